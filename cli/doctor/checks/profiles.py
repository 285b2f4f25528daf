"""Checks that profiles, kube-scheduler's configuration and pods fit together."""

from datetime import datetime

from cli.doctor.check import Check, Result, listed, ok, problem, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import NotReadError, known
from cli.doctor.installation.objects import Object
from cli.doctor.installation.pods import name_of
from moorage.errors import suggestion

CLUSTER = "default-scheduler"
"""The profile of the cluster's own kube-scheduler."""

SECONDS = 30.0
"""How long a pod may wait for the first look of a scheduler."""


def served(installation: Installation) -> Result:
    """Look whether kube-scheduler has each profile of the policy."""
    names = _scheduler_names(installation)
    missing = [each for each in installation.policy.profiles if each not in names]
    if missing:
        near = suggestion(missing[0], names)
        return problem(
            f"no kube-scheduler that asks Moorage has the profile {listed(missing)}{near}: pods "
            "that name it get nothing of the policy",
            f"add schedulerName: {missing[0]} to profiles in kube-scheduler's configuration, and "
            "restart it; or remove the profile from the policy",
        )
    return ok(f"kube-scheduler has the policy's profiles: {listed(installation.policy.profiles)}")


def in_policy(installation: Installation) -> Result:
    """Look whether the policy has each profile of kube-scheduler."""
    profiles = installation.policy.profiles
    names = _scheduler_names(installation)
    unknown = [each for each in names if each not in (*profiles, CLUSTER)]
    if not unknown and CLUSTER in names and CLUSTER not in profiles:
        return ok(f"kube-scheduler asks about pods of {CLUSTER} too, which pass all filters")
    if unknown:
        return warning(
            f"kube-scheduler asks about pods of {listed(unknown)}{suggestion(unknown[0], profiles)}"
            ", which is no profile of the policy: they pass all filters and get no scores",
            "add the profile to the policy, or leave it to another kube-scheduler",
        )
    return ok("the policy has all profiles of kube-scheduler")


def used(installation: Installation) -> Result:
    """Look whether any pod names each profile."""
    users = installation.users
    if not users:
        raise NotReadError("the pods of the profiles could not be read")
    unused = [profile for profile, found in users.items() if not known(found)]
    if unused:
        return warning(
            f"no pod names the profile {listed(unused)}",
            f"write schedulerName: {unused[0]} into pods that it is for, or remove the profile",
        )
    return ok(f"pods name each profile: {listed(list(users))}")


def waiting(installation: Installation) -> Result:
    """Look for pods that no scheduler has looked at."""
    pods = installation.objects.of("waiting pods")
    served_names = {CLUSTER, *_names_if_known(installation)}
    lost = [pod for pod in pods if _is_lost(pod, installation.now)]
    if not lost:
        return ok(f"schedulers have looked at each of {len(pods)} pods that wait")
    names = list(dict.fromkeys(pod["spec"].get("schedulerName", CLUSTER) for pod in lost))
    unknown = [name for name in names if name not in served_names]
    if unknown:
        its = [name_of(pod) for pod in lost if pod["spec"].get("schedulerName") == unknown[0]]
        return problem(
            f"no scheduler has looked at {listed(its)}: schedulerName is {unknown[0]}"
            f"{suggestion(unknown[0], served_names)}",
            "correct schedulerName (pods must be created again), or add the profile to "
            "kube-scheduler and policy",
        )
    return problem(
        f"no scheduler has looked at {listed([name_of(pod) for pod in lost])} of {listed(names)}",
        "see whether that kube-scheduler runs and leads: its pods, its log and its Lease",
    )


def own_pods(installation: Installation) -> Result:
    """Look whether pods of Moorage need Moorage to be scheduled."""
    profiles = _needing_moorage(installation)
    named = [
        (f"Deployment {name_of(each)}", each["spec"]["template"]["spec"])
        for each in installation.objects.of("deployments")
    ] + [(f"pod {name_of(each)}", each["spec"]) for each in installation.objects.of("pods")]
    ours = [name for name, spec in named if spec.get("schedulerName", CLUSTER) in profiles]
    if ours:
        return problem(
            f"{listed(ours)} is scheduled by a profile that asks Moorage: it cannot start while "
            "Moorage is down",
            f"set schedulerName: {CLUSTER}; where the cluster's own scheduler asks Moorage, set "
            "ignorable: true, or run a second scheduler for Moorage's pods",
        )
    return ok(f"none of {len(named)} pods and Deployments of Moorage needs Moorage to start")


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
        name="profile-served",
        about="kube-scheduler has each profile of the policy.",
        run=served,
    ),
    Check(
        name="profile-in-policy",
        about="The policy has each profile of the kube-scheduler that asks Moorage.",
        run=in_policy,
    ),
    Check(name="profile-used", about="Pods name each profile of the policy.", run=used),
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
