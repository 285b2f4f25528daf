"""What became of all pods together: how many, on how many nodes, and why some have none."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from cli.up.following import Outcome, PodState

SHOWN = 3
"""Pods that are named of those deleted together."""

COUNT = re.compile(r"^\d+ ")
"""How many nodes a reason is about, as kube-scheduler writes it."""

PENDING = (Outcome.FAILING, Outcome.UNSERVED, Outcome.UNSCHEDULABLE)


def totals(pods: Sequence[PodState]) -> str:
    """Return how many pods there are of each kind."""
    outcomes = Counter(pod.outcome for pod in pods)
    parts = [
        f"{outcomes[Outcome.BOUND]} of {len(pods)} pods bound",
        f"{sum(outcomes[kind] for kind in PENDING)} pending",
    ]
    for outcome, text in ((Outcome.WAITING, "not decided yet"), (Outcome.DELETED, "deleted")):
        if outcomes[outcome]:
            parts.append(f"{outcomes[outcome]} {text}")
    return ", ".join(parts)


def spread(pods: Sequence[PodState], nodes: int, seconds: float) -> Iterator[str]:
    """Yield how long it took and how evenly the pods are spread; nothing if none is bound.

    Args:
        pods: The pods that had to be scheduled.
        nodes: How many nodes there are.
        seconds: How long it took.
    """
    used = Counter(pod.node for pod in pods if pod.outcome is Outcome.BOUND).values()
    if not used:
        return
    least, most, bound = min(used), max(used), sum(used)
    each = f"{least}" if least == most else f"{least} to {most}"
    pods_on_each = "1 pod" if most == 1 else f"{each} pods"
    mean = "" if least == most else f", {bound / len(used):.1f} on average"
    rate = f" ({bound / seconds:.3g} pods/s)" if seconds else ""
    yield f"{seconds:.1f} s{rate}; {len(used)} of {nodes} nodes used, {pods_on_each} on each{mean}"


def deletions(pods: Sequence[PodState]) -> Iterator[str]:
    """Yield how many pods were deleted, those that were preempted apart; one alone by its name."""
    for preempted, how in ((False, ""), (True, ": preempted for a more important pod")):
        names = [f"{pod.namespace}/{pod.name}" for pod in pods if pod.preempted == preempted]
        if len(names) == 1:
            yield f"{names[0]} -> deleted{how}"
        elif names:
            more = ", ..." if len(names) > SHOWN else ""
            yield f"{len(names)} pods deleted{how} ({', '.join(names[:SHOWN])}{more})"


def by_problem(pods: Sequence[PodState]) -> list[list[PodState]]:
    """Return the pods without a node in groups that have the same problem, the largest first."""
    groups: defaultdict[tuple[Outcome, str, str], list[PodState]] = defaultdict(list)
    for pod in pods:
        if pod.outcome in PENDING:
            groups[pod.outcome, pod.scheduler, _problem(pod.problem)].append(pod)
    return sorted(groups.values(), key=len, reverse=True)


def _problem(message: str) -> str:
    """Return the reasons in kube-scheduler's message without numbers of nodes, in any order.

    `0/3 nodes are available: 2 node is too hot, 1 Insufficient cpu. preemption: ...`
    """
    reasons = message.partition(". preemption: ")[0].rpartition(" are available: ")[2]
    return ", ".join(sorted({COUNT.sub("", reason) for reason in reasons.split(", ")}))
