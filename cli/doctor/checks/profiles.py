"""Checks that profiles, kube-scheduler's configuration and pods fit together."""

from collections.abc import Iterator
from datetime import datetime

from cli.doctor.check import Check, Result, listed, ok, problem, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import NotReadError, Object
from cli.doctor.installation.pods import name_of
from moorage.errors import suggestion

CLUSTER = "default-scheduler"
"""The profile of the cluster's own kube-scheduler."""

SECONDS = 30.0
"""How long a pod may wait for the first look of a scheduler."""


def served(installation: Installation) -> Iterator[Result]:
    """Compare the policy's profiles with kube-scheduler's."""
    names, profiles = _scheduler_names(installation), installation.policy.profiles
    missing = [each for each in profiles if each not in names]
    if missing:
        yield problem(
            f"no kube-scheduler that asks Moorage has the profile {listed(missing)}"
            f"{suggestion(missing[0], names)}: pods that name it get nothing of the policy",
            f"add schedulerName: {missing[0]} to profiles in kube-scheduler's configuration, and "
            "restart it; or remove the profile from the policy",
        )
    strange = [each for each in names if each not in (*profiles, CLUSTER)]
    if strange:
        yield warning(
            f"kube-scheduler asks about pods of {listed(strange)}{suggestion(strange[0], profiles)}"
            ", which is no profile of the policy: they pass all filters and get no scores",
            "add the profile to the policy, or leave it to another kube-scheduler",
        )
    yield ok(f"kube-scheduler has the policy's profiles: {listed(profiles)}")


def waiting(installation: Installation) -> Iterator[Result]:
    """Look for pods that no scheduler has looked at."""
    pods = installation.objects.of("waiting pods")
    served_names = {CLUSTER, *_names_if_known(installation)}
    lost: dict[str, list[str]] = {}
    for pod in pods:
        if _is_lost(pod, installation.now):
            lost.setdefault(pod["spec"].get("schedulerName", CLUSTER), []).append(name_of(pod))
    for name, names in lost.items():
        if name in served_names:
            yield problem(
                f"no scheduler has looked at {listed(names)} of {name}",
                "see whether that kube-scheduler runs and leads: its pods, its log and its Lease",
            )
        else:
            yield problem(
                f"no scheduler has looked at {listed(names)}: schedulerName is {name}"
                f"{suggestion(name, served_names)}",
                "correct schedulerName (pods must be created again), or add the profile to "
                "kube-scheduler and policy",
            )
    yield ok(f"schedulers have looked at each of {len(pods)} pods that wait")


def own_pods(installation: Installation) -> Iterator[Result]:
    """Look whether pods of Moorage need Moorage to be scheduled."""
    profiles = _needing_moorage(installation)
    named = [
        (f"Deployment {name_of(each)}", each["spec"]["template"]["spec"])
        for each in installation.objects.of("deployments")
    ] + [(f"pod {name_of(each)}", each["spec"]) for each in installation.objects.of("pods")]
    ours = [name for name, spec in named if spec.get("schedulerName", CLUSTER) in profiles]
    if ours:
        yield problem(
            f"{listed(ours)} is scheduled by a profile that asks Moorage: it cannot start while "
            "Moorage is down",
            f"set schedulerName: {CLUSTER}; where the cluster's own scheduler asks Moorage, set "
            "ignorable: true, or run a second scheduler for Moorage's pods",
        )
    yield ok(f"none of {len(named)} pods and Deployments of Moorage needs Moorage to start")


def _scheduler_names(installation: Installation) -> list[str]:
    return [
        name
        for _, configuration in installation.configurations
        for name in configuration.scheduler_names
    ]


def _needing_moorage(installation: Installation) -> set[str]:
    """Return the profiles whose pods are not placed while Moorage is down."""
    try:
        return {
            name
            for _, configuration in installation.configurations
            if any(not e.ignorable and not e.managed_resources for e in configuration.extenders)
            for name in configuration.scheduler_names
        }
    except NotReadError:
        return set(installation.policy.profiles)


def _names_if_known(installation: Installation) -> list[str]:
    try:
        return _scheduler_names(installation)
    except NotReadError:
        return []


def _is_lost(pod: Object, now: datetime) -> bool:
    """Whether a pod waits, not by its own gates, and no scheduler has reported about it."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if pod["spec"].get("schedulingGates") or any(c["type"] == "PodScheduled" for c in conditions):
        return False
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return (now - created).total_seconds() > SECONDS


CHECKS = (
    Check(
        name="profiles",
        about="kube-scheduler has each profile of the policy, and the policy each of its own.",
        run=served,
    ),
    Check(
        name="pods-waiting",
        about=f"A scheduler has looked at each pod that has waited for {SECONDS:g} s.",
        run=waiting,
    ),
    Check(
        name="own-pods",
        about="Moorage's own pods are not scheduled by a profile that asks Moorage.",
        run=own_pods,
    ),
)
