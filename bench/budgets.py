"""The budgets of the design, and whether a run kept them.

Where no unit is named they are ratios to the Go extender that does nothing, measured in the same
run on the same machine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.cliffs import JOIN
from bench.cluster import OURS
from bench.edge import MAIN, NUMBERED
from bench.figures import growth_exponent
from bench.results import CliffResult, EdgeResult, Results, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A promise.

    Attributes:
        work: What is done.
        limit: What is measured may reach it.
        at_most: Whether less is better; else more is.
        measured: Finds it in the results, None if it was not measured.
        unit: Of the limit; "x" for ratios.
    """

    work: str
    limit: float
    measured: Callable[[Results], float | None]
    at_most: bool = True
    unit: str = "x"

    def verdict(self, results: Results) -> Verdict:
        """Tell whether the budget was kept."""
        found = self.measured(results)
        sign = "at most" if self.at_most else "at least"
        kept = None
        if found is not None:
            kept = found <= self.limit if self.at_most else found >= self.limit
        bound = f"{sign} {self.limit:g} {self.unit}"
        return Verdict(work=self.work, bound=bound, measured=found, kept=kept, unit=self.unit)


def verdicts(results: Results) -> Iterator[Verdict]:
    """Judge a run by all budgets."""
    return (budget.verdict(results) for budget in BUDGETS)


def kept(judged: list[Verdict]) -> bool:
    """Whether no budget was missed; what was not measured was not missed."""
    return not any(verdict.kept is False for verdict in judged)


def _edge(question: str, contender: str) -> Callable[[Results], float | None]:
    """Return how to find the ratio at the edge, by the rule that is harder for Moorage.

    Without a pause, so that it waits for the scores; and until the last byte of each answer, for
    what kube-scheduler needs to decode the answers is the same for all.
    """

    def is_it(result: EdgeResult) -> bool:
        return (result.question, result.contender, result.pause) == (question, contender, 0)

    return lambda results: next((r.ratio_answered for r in results.edge if is_it(r)), None)


def _growth(results: Results) -> float | None:
    """Return the exponent with which filter and prioritize grow with the nodes: 1 is linear."""
    times = {
        size.nodes: one.answered.p50
        for size in results.growth
        for one in size.edge
        if one.contender == MAIN
    }
    return growth_exponent(times) if len(times) > 1 else None


def _pods_per_second(results: Results) -> float | None:
    """Return the worst of Moorage's ratios: with either sampling, and binding or not."""
    return min((r.ratio for r in results.scheduling if r.contender in OURS), default=None)


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


MIB = 1 << 20

BUDGETS = (
    Budget(
        work="filter + prioritize, 5,000 names, 3 filters and 3 scores, numbered pods",
        limit=0.6,
        measured=_edge("5000 names", NUMBERED),
    ),
    Budget(
        work="filter + prioritize, 500 names, 3 filters and 3 scores, numbered pods",
        limit=1.5,
        measured=_edge("500 names", NUMBERED),
    ),
    Budget(
        work="filter + prioritize, 5,000 whole nodes, 3 filters and 3 scores",
        limit=0.3,
        measured=_edge("5000 whole nodes", MAIN),
    ),
    Budget(
        work="pods/s through a real kube-scheduler, 5,000 nodes, the worst case",
        limit=0.9,
        measured=_pods_per_second,
        at_most=False,
    ),
    Budget(
        work="exponent of growth with the nodes; 1 is linear, the rest is for noise",
        limit=1.05,
        measured=_growth,
    ),
    Budget(
        work="p99 of filter + prioritize while a scorer joins, more than at rest",
        limit=20,
        measured=_join,
        unit="ms",
    ),
    Budget(
        work="memory of the largest process, 5,000 nodes with 150,000 pods",
        limit=500,
        measured=_memory,
        unit="MB",
    ),
)
