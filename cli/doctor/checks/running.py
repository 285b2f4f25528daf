"""Checks what runs: processes, pods, who leads, replicas, the policy, the state, plugins."""

import hashlib
from collections.abc import Iterator
from datetime import datetime

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.objects import Missing, Object, known
from cli.doctor.installation.pods import is_active, is_ready, name_of, scheduler_in
from cli.doctor.installation.processes import Process

SILENT = 180.0
"""Seconds without a sign of the API server after which the state counts as stale."""

BEHIND = 1000
"""Changes that a replica may be behind the gateway."""

LEASE_SECONDS = 15

STANDS_BY = "holds the Lease"
"""Part of the reason of a gateway that is not ready since another one leads."""

FEWEST = 20
"""Cycles before it counts that a plugin never has an effect."""

ROUNDED = 0.1
"""The share of cycles from which rounding matters."""

CHANGES = {
    "ImagePullBackOff": "push the image where the nodes can pull it, or give imagePullSecrets",
    "ErrImagePull": "push the image where the nodes can pull it, or give imagePullSecrets",
    "ContainerCreating": "see its events with kubectl describe; without certificates run "
    "`moorage certs --secrets NAMESPACE | kubectl apply -f -`",
    "CrashLoopBackOff": "see its log: kubectl logs --previous",
    "Unschedulable": "give it a node: kubectl describe has what each node lacks",
    "quota": "apply the ResourceQuota critical-pods: without it some clusters, GKE among them, "
    "create no pods of this priority class",
}
"""What to do about a pod that is not ready, by a word of the reason."""


def processes(installation: Installation) -> Iterator[Result]:
    """Read what `/readyz` of each process says."""
    gateway = installation.gateway
    if isinstance(gateway, Missing):
        yield problem(
            f"the gateway does not answer: {gateway.reason}",
            "see whether its pod runs (kubectl -n NAMESPACE get pods), and whether you may ask it",
        )
    else:
        own = gateway.pod.rpartition("/")[2]
        asked = {gateway.place: known(gateway.process)} | {
            name: process
            for name, process in installation.processes.items()
            if not isinstance(process, Missing) and name != f"{own} (gateway)"
        }
        for name, process in asked.items():
            for check, reason in process.problems.items():
                if STANDS_BY not in reason:
                    yield problem(
                        f"{name} is not ready: {check}: {reason}",
                        "do what its reason asks for; its log has more",
                    )
            for check, note in process.notes.items():
                yield warning(f"{name}: {check}: {note}", "see the log of that process")
        yield ok(f"the gateway {gateway.place} is ready, and none of {len(asked)} reports trouble")


def pods(installation: Installation) -> Iterator[Result]:
    """Look for pods of Deployments that are not ready, and why."""
    every = installation.objects.of("deployments")
    if not every:
        yield unchecked("there is no Deployment in the gateway's namespace")
    for each in every:
        wanted, status = each["spec"].get("replicas", 1), each.get("status") or {}
        ready = status.get("readyReplicas", 0)
        stands_by = each["metadata"]["name"] == "gateway" and wanted > 1 and ready
        if ready >= wanted or stands_by:
            continue
        reason = next(_reasons(installation, each), "")
        change = next((text for word, text in CHANGES.items() if word in reason), "")
        found = warning if ready else problem
        yield found(
            f"{ready} of {wanted} replicas of Deployment {name_of(each)} are ready"
            + (f": {reason}" if reason else ""),
            change or "kubectl describe the pods that are not, and see their logs",
        )
    yield ok(f"all replicas of {len(every)} Deployments are ready")


def _reasons(installation: Installation, deployment: Object) -> Iterator[str]:
    """Yield what pods of a Deployment wait for, and why it has none."""
    labels = deployment["spec"]["selector"].get("matchLabels") or {}
    for pod in installation.objects.of("pods"):
        own = pod["metadata"].get("labels") or {}
        if not (labels and labels.items() <= own.items()) or is_ready(pod):
            continue
        status = pod.get("status") or {}
        states = [
            state["state"]["waiting"]
            for kind in ("initContainerStatuses", "containerStatuses")
            for state in status.get(kind) or ()
            if (state.get("state") or {}).get("waiting")
        ]
        conditions = [c for c in status.get("conditions") or () if c.get("status") == "False"]
        for each in states or conditions:
            text = ": ".join(filter(None, (each.get("reason"), each.get("message"))))
            yield f"{name_of(pod)}: {text or each.get('type')}"
    for condition in (deployment.get("status") or {}).get("conditions") or ():
        kind = condition.get("type"), condition.get("status")
        if kind in (("ReplicaFailure", "True"), ("Available", "False")):
            yield str(condition.get("message", ""))


def leader(installation: Installation) -> Iterator[Result]:
    """Look who holds the Leases of gateways and of a kube-scheduler of its own."""
    own = installation.own
    gateways = [pod for pod in installation.pods("gateway") if is_active(pod)]
    elects = own.leader_election == "lease"
    wanted = {own.lease_name: "gateway"} if elects else {}
    if elects and len(gateways) == 1:
        yield warning(
            "gateways elect a leader, and only 1 runs", "set replicas of the gateway to 2"
        )
    alone = [pod for pod in gateways if scheduler_in(pod) is None]
    if not elects and len(alone) > 1:
        yield problem(
            f"{len(alone)} gateways run without a Lease: each decides by itself",
            "apply the layout high-availability, or set replicas of the gateway to 1",
        )
    for scheduler in installation.schedulers:
        if not isinstance(scheduler.configuration, Missing):
            election = scheduler.configuration.leader_election
            here = election.get("resourceNamespace") == installation.namespace
            if here and election.get("leaderElect", True):
                wanted[str(election.get("resourceName"))] = "kube-scheduler"
    leases = {each["metadata"]["name"]: each for each in installation.objects.of("leases")}
    for name, who in wanted.items():
        yield _led(installation, leases.get(name), name, who)
    yield ok("nothing here elects a leader")


def _led(installation: Installation, lease: Object | None, name: str, who: str) -> Result:
    change = f"see the log of {who}: it needs get, create and update for this Lease"
    spec = (lease or {}).get("spec") or {}
    holder = spec.get("holderIdentity") or ""
    if not spec.get("renewTime"):
        return problem(f"no {who} holds the Lease {name}: there is none", change)
    age = installation.now.timestamp() + known(installation.api_server).skew
    age -= datetime.fromisoformat(spec["renewTime"]).timestamp()
    if not holder or age > 2 * spec.get("leaseDurationSeconds", LEASE_SECONDS):
        return problem(
            f"no {who} holds the Lease {name}: last renewed {age:.0f} s ago by "
            f"{holder or 'nobody'}",
            change,
        )
    return ok(f"{holder} holds the Lease {name}, renewed {max(age, 0):.0f} s ago")


def sessions(installation: Installation) -> Iterator[Result]:
    """Look whether the gateway has sessions with replicas that keep up with it."""
    counts = []
    for pool in installation.replicas.services:
        counts.append(f"{len(pool.replicas)} of {pool.service}")
        if not pool.replicas:
            effect = "pods wait" if pool.service == "filter" else "pods are placed without scores"
            yield problem(
                f"the gateway has no replica of {pool.service}: {pool.problem or effect}",
                f"see whether pods of {pool.service} run, and its address in --{pool.service}",
            )
        elif pool.problem:
            yield warning(f"{pool.service}: {pool.problem}", "see the gateway's log")
        for replica in pool.replicas:
            if replica.behind > BEHIND:
                yield warning(
                    f"{pool.service} at {replica.place} is {replica.behind:,} changes behind",
                    "see whether it has enough CPU",
                )
    binder = installation.replicas.binder
    if binder.note:
        yield warning(f"binder at {binder.place}: {binder.note}", "see the binder's log")
    yield ok(f"the gateway has sessions with {listed(counts)}")


def fresh(installation: Installation) -> Iterator[Result]:
    """Look how old the gateway's state is."""
    silent = installation.replicas.silent_seconds
    for kind, age in silent.items():
        if age is None or age > SILENT:
            shown = "never" if age is None else f"not for {age:.0f} s"
            yield problem(
                f"the gateway has {shown} heard of {kind} from the API server",
                "see its log, and the check release-rights",
            )
    ages = [age for age in silent.values() if age is not None]
    yield ok(f"the gateway heard of each kind of object at most {max(ages, default=0):.0f} s ago")


def policy(installation: Installation) -> Iterator[Result]:
    """Compare the active policy with the file and the ConfigMap."""
    active = installation.policy
    if active.note:
        yield problem(
            f"the active policy is not the file's: {active.note}",
            "correct the file: moorage config validate FILE",
        )
    for text in active.warnings:
        yield warning(f"the policy has a part without effect: {text}", "correct or remove it")
    found = installation.objects.named("configmaps", "policy") or {}
    hashes = {
        hashlib.sha256(text.encode()).hexdigest() for text in (found.get("data") or {}).values()
    }
    if active.file_hash and hashes and active.file_hash not in hashes:
        yield warning(
            f"policy {active.revision} is active, and ConfigMap {installation.namespace}/policy "
            "has another content",
            "wait a minute: the kubelet updates the file; then look at the gateway's log",
        )
    yield ok(f"policy {active.revision} is active")


def plugins(installation: Installation) -> Iterator[Result]:
    """Look for plugins that fail, are suspended or have no effect."""
    for pool in installation.replicas.services:
        for replica in pool.replicas:
            for name, text in replica.problems.items():
                yield warning(
                    f"plugin {name} at {pool.service} {replica.place}: {text}",
                    "correct the plugin; its log has the traceback",
                )
    for text in installation.replicas.binder.problems:
        yield warning(f"binder: {text}", "correct the plugin")
    process = known(installation.report.process)
    cycles = process.total("moorage_extender_requests_total", verb="prioritize", result="ok")
    yield from _failures(process)
    yield from _scores(process, cycles)
    yield ok(f"no plugin fails, and scores have an effect, as far as {cycles:.0f} cycles show")


def _failures(process: Process) -> Iterator[Result]:
    for each in process.samples:
        if each.name == "moorage_plugin_failures_total" and each.value:
            yield warning(
                f"plugin {each.labels.get('plugin', '')} has failed in {each.value:.0f} cycles, "
                "which went on without it",
                "look for the cause in `moorage top`, and in the service's log",
            )


def _scores(process: Process, cycles: float) -> Iterator[Result]:
    for each in process.samples:
        if each.name == "moorage_neutral_scores_total" and each.value >= cycles >= FEWEST:
            yield warning(
                f"plugin {each.labels.get('plugin', '')} has affected the order of nodes in none "
                f"of {cycles:.0f} cycles: all nodes had the same score, or it skipped the pod",
                "see its scores in the inspector; if it measures, whether there are measurements",
            )
    rounded = process.total("moorage_rounded_scores_total")
    if cycles >= FEWEST and rounded > cycles * ROUNDED:
        yield warning(
            f"in {rounded:.0f} of {cycles:.0f} cycles rounding made worse nodes equal to the best",
            "raise the policy's scoreScale, and the weight in kube-scheduler's configuration",
        )


CHECKS = (
    Check(
        name="processes-ready",
        about="The gateway answers, and `/readyz` of each process is well and without notes.",
        run=processes,
    ),
    Check(
        name="pods-ready",
        about="The Deployments have the pods that they ask for; otherwise the reason of one.",
        run=pods,
    ),
    Check(
        name="leader",
        about="Where gateways or kube-schedulers elect a leader, one renews the Lease.",
        run=leader,
    ),
    Check(
        name="sessions",
        about="The gateway has sessions with filters and scorers that keep up, and a binder.",
        run=sessions,
    ),
    Check(
        name="state-fresh",
        about="The gateway hears of nodes and pods from the API server.",
        run=fresh,
    ),
    Check(
        name="policy-active",
        about="The active policy is the one in the file and in the ConfigMap.",
        run=policy,
    ),
    Check(
        name="plugins-work",
        about="No plugin fails, in cycles or in the background, and scores have an effect.",
        run=plugins,
    ),
)
