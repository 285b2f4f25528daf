"""The budgets of the design, and whether a run kept them.

Without another unit they are ratios to the Go extender that does nothing, measured in the same run
on the same machine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log
from statistics import linear_regression

from bench.cluster.cases import HEAVY, LIGHT, MOORAGE, MOORAGE_BINDS, MOORAGE_UNLIKE
from bench.edge import MAIN, NUMBERED, PER_NODE
from bench.results import CLUSTER, EDGE, GROWTH, EdgeResult, Results, SchedulingResult, Verdict

MIB = 1 << 20


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
    if len(times) < 2:
        return None
    return linear_regression(list(map(log, times)), list(map(log, times.values()))).slope


def _scheduling(
    cluster: str, contender: str, what: Callable[[SchedulingResult], float]
) -> Callable[[Results], float | None]:
    """Return how to find a figure of a row of pods a second."""
    return lambda results: next(
        (
            what(row)
            for row in results.scheduling
            if (row.cluster, row.contender) == (cluster, contender)
        ),
        None,
    )


def _memory(results: Results) -> float | None:
    """Return the MB of the largest process with 5,000 nodes."""
    sizes = [size for size in results.growth if size.nodes == MEMORY_NODES]
    found = (one.pss for size in sizes for one in size.memory.values())
    return max((pss * MIB / 1e6 for pss in found), default=None)


MEMORY_NODES = 5000

EDGE_LIMITS = (
    ("5000 names", NUMBERED, 0.5),
    ("5000 names", MAIN, 0.7),
    ("500 names", NUMBERED, 0.8),
    ("500 names", MAIN, 1.3),
    ("5000 whole nodes", MAIN, 0.28),
    ("500 names", PER_NODE, 1.5),
)
"""The time of filter and prioritize together, by question and contender."""

CLUSTER_LIMITS = ((MOORAGE, 0.9, 2.0), (MOORAGE_BINDS, 0.9, 3.5), (MOORAGE_UNLIKE, 0.75, 4.0))
"""The least pods a second, and the most processor time a pod, by contender."""

BUDGETS = (
    *(
        Budget(
            part=EDGE,
            work=f"filter + prioritize, {question}, {contender}",
            limit=limit,
            measured=_edge(question, contender),
        )
        for question, contender, limit in EDGE_LIMITS
    ),
    *(
        Budget(
            part=CLUSTER,
            work=f"pods/s, {cluster} cluster, {contender}",
            limit=pods_per_second,
            measured=_scheduling(cluster, contender, lambda row: row.ratio),
            at_most=False,
        )
        for cluster in (HEAVY, LIGHT)
        for contender, pods_per_second, _ in CLUSTER_LIMITS
    ),
    *(
        Budget(
            part=CLUSTER,
            work=f"processor time a pod of all processes, {cluster} cluster, {contender}",
            limit=processor,
            measured=_scheduling(cluster, contender, lambda row: row.processor_ratio),
        )
        for cluster in (HEAVY, LIGHT)
        for contender, _, processor in CLUSTER_LIMITS
    ),
    Budget(
        part=GROWTH,
        work="exponent of growth with the nodes; 1 is linear, the rest is for noise",
        limit=1.05,
        measured=_growth,
    ),
    Budget(
        part=GROWTH,
        work="memory of the largest process, 5,000 nodes with 150,000 pods",
        limit=350,
        measured=_memory,
        unit="MB",
    ),
)
