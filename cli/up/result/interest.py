"""Chooses which pods of a large workload are worth a row."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.up.clients.standin import StandIn
from cli.up.following import Outcome, PodState

LOOKED_AT = 200
"""Bound pods whose decisions are read, evenly taken from all; each costs a request."""

WITHOUT_NODE = (Outcome.FAILING, Outcome.UNSERVED, Outcome.UNSCHEDULABLE, Outcome.DELETED)
"""These come first, in this order."""


async def most_interesting(
    pods: Sequence[PodState], count: int, scheduler: StandIn
) -> list[PodState]:
    """Return *count* pods: without a node, then outvoted or tied ones, then a sample of the others.

    Of those without a node, one for each problem comes before a second one with the same. Pods that
    were not tried yet come last.
    """
    without = [pod for kind in WITHOUT_NODE for pod in pods if pod.outcome is kind]
    if len(without) >= count:
        return _each_problem_first(without)[:count]
    bound = _sample([pod for pod in pods if pod.outcome is Outcome.BOUND], LOOKED_AT)
    decisions = await asyncio.gather(*(scheduler.decision(p.namespace, p.name) for p in bound))
    ranks = [_rank(decision) for decision in decisions]
    chosen: list[PodState] = []
    for rank in range(3):
        left = count - len(without) - len(chosen)
        chosen += _sample([p for p, r in zip(bound, ranks, strict=True) if r == rank], left)
    waiting = [pod for pod in pods if pod.outcome is Outcome.WAITING]
    return [*_each_problem_first(without), *chosen, *waiting][:count]


def _rank(decision: Mapping[str, Any] | None) -> int:
    """Return 0 if the best node by Moorage's scores was outvoted, 1 for a tie, else 2."""
    scores = (decision or {}).get("scores")
    if not decision or not scores:
        return 2
    if scores.get("preferred"):
        return 0
    return 1 if scores["equals"] else 2


def _each_problem_first(pods: Sequence[PodState]) -> list[PodState]:
    first = {(pod.outcome, pod.scheduler, pod.problem): pod for pod in reversed(pods)}
    uids = {pod.uid for pod in first.values()}
    return sorted(pods, key=lambda pod: pod.uid not in uids)


def _sample(pods: Sequence[PodState], count: int) -> list[PodState]:
    """Return at most *count* of the pods, evenly taken."""
    if len(pods) <= count:
        return list(pods)
    return [pods[index] for index in _evenly(len(pods), count)]


def _evenly(length: int, count: int) -> Iterator[int]:
    return (index * length // count for index in range(count))
