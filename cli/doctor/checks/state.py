"""Checks what runs: the gateway that decides, replicas, the policy, the state."""

import hashlib
from datetime import datetime

from cli.doctor.check import Check, Result, listed, ok, problem, unchecked, warning, worst
from cli.doctor.installation.gateway import Replica
from cli.doctor.installation.installation import Installation
from cli.doctor.installation.known import Missing, known
from cli.doctor.installation.pods import is_active, name_of

SILENT = 180.0
"""Seconds without a sign of the API server after which the state counts as stale."""

BEHIND = 1000
"""Changes that a replica may be behind the gateway."""

LEASE_SECONDS = 15


def gateway_ready(installation: Installation) -> Result:
    """Read the gateway's readiness checks."""
    gateway = installation.gateway
    if isinstance(gateway, Missing):
        return problem(
            f"the gateway does not answer: {gateway.reason}",
            "see whether its pod runs (kubectl -n NAMESPACE get pods), and whether you may ask it",
        )
    process = known(gateway.process)
    if process.problems:
        name, reason = next(iter(process.problems.items()))
        return problem(
            f"the gateway {gateway.place} is not ready: {name}: {reason}",
            "do what its reason asks for; kubectl describe and its log have more",
        )
    return ok(f"the gateway {gateway.place} is ready")


def leader(installation: Installation) -> Result:
    """Look who holds the Lease."""
    own = installation.own
    if own.leader_election != "lease":
        return ok("the gateway needs no Lease to decide")
    for lease in installation.objects.of("leases"):
        spec = lease.get("spec") or {}
        if lease["metadata"]["name"] == own.lease_name:
            holder = spec.get("holderIdentity") or ""
            age = installation.now.timestamp() + known(installation.api_server).skew
            age -= datetime.fromisoformat(spec["renewTime"]).timestamp()
            if not holder or age > 2 * spec.get("leaseDurationSeconds", LEASE_SECONDS):
                return problem(
                    f"no gateway holds the Lease {own.lease_name}: last renewed {age:.0f} s ago by "
                    f"{holder or 'nobody'}",
                    "see the gateways' logs, and the check rights-leases",
                )
            return ok(f"{holder} holds the Lease, renewed {max(age, 0):.0f} s ago")
    return problem(f"there is no Lease {own.lease_name}", "see the gateways' logs")


def standby(installation: Installation) -> Result:
    """Look whether another gateway could take over."""
    pods = [pod for pod in installation.pods("gateway") if is_active(pod)]
    if len(pods) > 1:
        return ok(f"{len(pods)} gateways run")
    if installation.own.leader_election == "lease":
        return warning(
            f"gateways elect a leader, and only {len(pods)} runs",
            "set replicas of the gateway to 2",
        )
    return ok("one gateway runs, as its layout has it: while it restarts, pods wait")


def replicas(installation: Installation) -> Result:
    """Look whether the Deployments have the replicas that they ask for."""
    results = []
    every = installation.objects.of("deployments")
    for each in every:
        wanted = each["spec"].get("replicas", 1)
        status = each.get("status") or {}
        ready = status.get("readyReplicas", 0)
        stands_by = each["metadata"]["name"] == "gateway" and wanted > 1
        if ready >= wanted or (stands_by and ready):
            continue
        failures = [c.get("message", "") for c in status.get("conditions") or () if _failed(c)]
        reason = f": {failures[0]}" if failures else ""
        found = warning if ready else problem
        results.append(
            found(
                f"{ready} of {wanted} replicas of Deployment {name_of(each)} are ready{reason}",
                "kubectl describe the pods that are not",
            )
        )
    if not every:
        return unchecked("there is no Deployment in the gateway's namespace")
    return worst(results, ok(f"all replicas of {len(every)} Deployments are ready"))


def sessions(installation: Installation) -> Result:
    """Look whether the gateway has sessions with replicas of filter and scorer."""
    results, counts = [], []
    for pool in installation.replicas.services:
        counts.append(f"{len(pool.replicas)} of {pool.service}")
        if not pool.replicas:
            effect = "pods wait" if pool.service == "filter" else "pods are placed without scores"
            results.append(
                problem(
                    f"the gateway has no replica of {pool.service}: {pool.problem or effect}",
                    f"see whether pods of {pool.service} run, and its address in --{pool.service}",
                )
            )
        elif pool.problem:
            results.append(warning(f"{pool.service}: {pool.problem}", "see the gateway's log"))
    binder = installation.replicas.binder
    if binder.note:
        results.append(warning(f"binder at {binder.place}: {binder.note}", "see the binder's log"))
    return worst(results, ok(f"the gateway has sessions with {listed(counts)}"))


def policy(installation: Installation) -> Result:
    """Compare the active policy with the file and the ConfigMap."""
    active = installation.policy
    if active.note:
        return problem(
            f"the active policy is not the file's: {active.note}",
            "correct the file: moorage config validate FILE",
        )
    if active.warnings:
        return warning(
            f"the policy has a part without effect: {active.warnings[0]}",
            "correct or remove it",
        )
    shown = f"policy {active.revision} is active"
    texts = [
        text
        for each in installation.objects.of("configmaps")
        if each["metadata"]["name"] == "policy"
        for text in (each.get("data") or {}).values()
    ]
    if active.file_hash and texts:
        if active.file_hash not in {hashlib.sha256(text.encode()).hexdigest() for text in texts}:
            return warning(
                f"{shown}, and ConfigMap {installation.namespace}/policy has another content",
                "wait a minute: the kubelet updates the file; then look at the gateway's log",
            )
        return ok(f"{shown}, as in ConfigMap {installation.namespace}/policy")
    return ok(shown)


def fresh(installation: Installation) -> Result:
    """Look how old the state is, in the gateway and in replicas."""
    results = []
    answer = installation.replicas
    for kind, age in answer.silent_seconds.items():
        if age is None or age > SILENT:
            shown = "never" if age is None else f"not for {age:.0f} s"
            results.append(
                problem(
                    f"the gateway has {shown} heard of {kind} from the API server",
                    "see its log, and the check rights-gateway",
                )
            )
    for pool in answer.services:
        results += [_behind(pool.service, replica) for replica in pool.replicas]
    ages = [age for age in answer.silent_seconds.values() if age is not None]
    return worst(
        results,
        ok(f"the gateway heard of each kind of object at most {max(ages, default=0):.0f} s ago"),
    )


def _behind(service: str, replica: Replica) -> Result:
    if replica.behind <= BEHIND:
        return ok(replica.place)
    return warning(
        f"{service} at {replica.place} is {replica.behind:,} changes behind",
        "see whether it has enough CPU",
    )


def _failed(condition: dict[str, str]) -> bool:
    kind, status = condition.get("type"), condition.get("status")
    return (kind, status) in (("ReplicaFailure", "True"), ("Available", "False"))


CHECKS = (
    Check(name="gateway-ready", about="The gateway that decides is ready.", run=gateway_ready),
    Check(
        name="leader",
        about="Where gateways elect a leader, one holds the Lease and renews it.",
        run=leader,
    ),
    Check(
        name="standby",
        about="Where gateways elect a leader, another one stands by.",
        run=standby,
    ),
    Check(
        name="replicas-ready",
        about="The Deployments have the replicas that they ask for.",
        run=replicas,
    ),
    Check(
        name="sessions",
        about="The gateway has sessions with filters and scorers, and reaches the binder.",
        run=sessions,
    ),
    Check(
        name="policy-active",
        about="The active policy is the one in the file and in the ConfigMap.",
        run=policy,
    ),
    Check(
        name="state-fresh",
        about="The gateway hears of nodes and pods, and replicas keep up with it.",
        run=fresh,
    ),
)
