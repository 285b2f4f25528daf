"""The budgets of the design, and whether a run kept them.

Without another unit they are ratios to the Go extender that does nothing, measured in the same run
on the same machine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.cluster.cases import ALL_NODES, DEFAULT, HEAVY, LIGHT, OURS
from bench.edge.contenders import MAIN, NUMBERED
from bench.figures import growth_exponent
from bench.growth.cliffs import JOIN
from bench.parts import CLIFFS, CLUSTER, EDGE, FULL_SAMPLE, GROWTH, RECORDS
from bench.results import CliffResult, EdgeResult, Results, SchedulingResult, Verdict

PODS_PER_SECOND = 0.9
PROCESSOR_MILLISECONDS = 1.5
"""Processor time a pod of all processes of Moorage together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit for one figure of the bench.

    Attributes:
        part: The part of the bench that measures it.
        work: What is done.
        limit: What is measured may reach it.
        at_most: Whether less is better; else more is.
        measured: Finds it in the results, None if it was not measured.
        unit: Of the limit; "x" for ratios.
    """

    part: str
    work: str
    limit: float
    measured: Callable[[Results], float | None]
    at_most: bool = True
    unit: str = "x"

    def verdict(self, results: Results) -> Verdict:
        """Return whether the budget was kept."""
        found = self.measured(results)
        sign = "at most" if self.at_most else "at least"
        kept = None
        if found is not None:
            kept = found <= self.limit if self.at_most else found >= self.limit
        bound = f"{sign} {self.limit:g} {self.unit}"
        return Verdict(
            part=self.part,
            work=self.work,
            bound=bound,
            measured=found,
            kept=kept,
            unit=self.unit,
        )


def verdicts(results: Results) -> Iterator[Verdict]:
    """Judge a run by all budgets."""
    return (budget.verdict(results) for budget in BUDGETS)


def kept(judged: list[Verdict]) -> bool:
    """Whether no budget was missed; what was not measured was not missed."""
    return not any(verdict.kept is False for verdict in judged)


def _edge(question: str, contender: str) -> Callable[[Results], float | None]:
    """Return how to find the ratio at the edge, in the case that is harder for Moorage.

    Without a pause, so that prioritize waits for the scores; and until the last byte of each
    answer, as kube-scheduler needs the same time to decode the answers of all.
    """

    def is_asked(result: EdgeResult) -> bool:
        return (result.question, result.contender, result.pause) == (question, contender, 0)

    return lambda results: next((r.ratio_answered for r in results.edge if is_asked(r)), None)


def _growth(results: Results) -> float | None:
    """Return the exponent with which filter and prioritize grow with the nodes: 1 is linear."""
    times = {
        size.nodes: one.answered.p50
        for size in results.growth
        for one in size.edge
        if one.contender == MAIN
    }
    return growth_exponent(times) if len(times) > 1 else None


def _ours(results: Results, cluster: str, sampling: str) -> Iterator[SchedulingResult]:
    for one in results.scheduling:
        if (one.cluster, one.sampling) == (cluster, sampling) and one.contender in OURS:
            yield one


def _pods_per_second(cluster: str, contender: str) -> Callable[[Results], float | None]:
    def measured(results: Results) -> float | None:
        rows = _ours(results, cluster, DEFAULT)
        return next((row.ratio for row in rows if row.contender == contender), None)

    return measured


def _full_sample(results: Results) -> float | None:
    return min((row.ratio for row in _ours(results, HEAVY, ALL_NODES)), default=None)


def _processor(cluster: str) -> Callable[[Results], float | None]:
    """Return how to find the row with the highest processor time."""

    def measured(results: Results) -> float | None:
        rows = _ours(results, cluster, DEFAULT)
        return max((row.processor_total for row in rows), default=None)

    return measured


def more_than_at_rest(rest: CliffResult, other: CliffResult) -> Iterator[float]:
    """Yield by how many milliseconds the p99 of Moorage's cycles is longer, for each question."""
    for calm, one in zip(rest.edge, other.edge, strict=True):
        if one.contender == MAIN:
            yield one.answered.p99 - calm.answered.p99


def _join(results: Results) -> float | None:
    """Return the worst of both numbers of names."""
    if results.cliffs is None:
        return None
    rest, *others = results.cliffs.situations
    joins = (one for one in others if one.situation == JOIN)
    return max((more for one in joins for more in more_than_at_rest(rest, one)), default=None)


def _memory(results: Results) -> float | None:
    """Return the largest process's, in MB."""
    found = results.cliffs.memory.values() if results.cliffs else ()
    return max((one.pss * MIB / 1e6 for one in found), default=None)


def _records(results: Results) -> float | None:
    """Return the largest ratio of the time of cycles, of all numbers of names and kinds of pods."""
    return max((one.ratio for one in results.records), default=None)


MIB = 1 << 20

BUDGETS = (
    Budget(
        part=EDGE,
        work="filter + prioritize, 5,000 names, 3 filters and 3 scores, numbered pods",
        limit=0.6,
        measured=_edge("5000 names", NUMBERED),
    ),
    Budget(
        part=EDGE,
        work="filter + prioritize, 5,000 names, 3 filters and 3 scores, unlike pods",
        limit=0.8,
        measured=_edge("5000 names", MAIN),
    ),
    Budget(
        part=EDGE,
        work="filter + prioritize, 500 names, 3 filters and 3 scores, numbered pods",
        limit=1.5,
        measured=_edge("500 names", NUMBERED),
    ),
    Budget(
        part=EDGE,
        work="filter + prioritize, 5,000 whole nodes, 3 filters and 3 scores",
        limit=0.3,
        measured=_edge("5000 whole nodes", MAIN),
    ),
    *(
        Budget(
            part=CLUSTER,
            work=f"pods/s, {cluster} cluster, {contender}",
            limit=PODS_PER_SECOND,
            measured=_pods_per_second(cluster, contender),
            at_most=False,
        )
        for cluster in (HEAVY, LIGHT)
        for contender in OURS
    ),
    *(
        Budget(
            part=CLUSTER,
            work=f"processor time a pod of all processes of Moorage, {cluster} cluster, worst row",
            limit=PROCESSOR_MILLISECONDS,
            measured=_processor(cluster),
            unit="ms",
        )
        for cluster in (HEAVY, LIGHT)
    ),
    Budget(
        part=FULL_SAMPLE,
        work="pods/s, heavy cluster, all nodes in every call, worst row",
        limit=PODS_PER_SECOND,
        measured=_full_sample,
        at_most=False,
    ),
    Budget(
        part=GROWTH,
        work="exponent of growth with the nodes; 1 is linear, the rest is for noise",
        limit=1.05,
        measured=_growth,
    ),
    Budget(
        part=CLIFFS,
        work="p99 of filter + prioritize while a scorer joins, more than at rest",
        limit=20,
        measured=_join,
        unit="ms",
    ),
    Budget(
        part=CLIFFS,
        work="memory of the largest process, 5,000 nodes with 150,000 pods",
        limit=500,
        measured=_memory,
        unit="MB",
    ),
    Budget(
        part=RECORDS,
        work="time of a cycle with records to that without, worst row",
        limit=1.03,
        measured=_records,
    ),
)
