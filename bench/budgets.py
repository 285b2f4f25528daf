"""The budgets of the design, and whether a run kept them.

All are ratios to the Go extender that does nothing, measured in the same run on the same machine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.cluster import OURS
from bench.edge import MAIN
from bench.figures import growth_exponent
from bench.results import EdgeResult, Results, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A promise.

    Attributes:
        work: What is done.
        limit: The measured ratio may reach it.
        at_most: Whether less is better; else more is.
        measured: Finds the ratio in the results, None if it was not measured.
    """

    work: str
    limit: float
    measured: Callable[[Results], float | None]
    at_most: bool = True

    def verdict(self, results: Results) -> Verdict:
        """Tell whether the budget was kept."""
        ratio = self.measured(results)
        sign = "at most" if self.at_most else "at least"
        kept = None
        if ratio is not None:
            kept = ratio <= self.limit if self.at_most else ratio >= self.limit
        bound = f"{sign} {self.limit:g} x"
        return Verdict(work=self.work, bound=bound, measured=ratio, kept=kept)


def verdicts(results: Results) -> Iterator[Verdict]:
    """Judge a run by all budgets."""
    return (budget.verdict(results) for budget in BUDGETS)


def kept(judged: list[Verdict]) -> bool:
    """Whether no budget was missed; what was not measured was not missed."""
    return not any(verdict.kept is False for verdict in judged)


def _edge(question: str) -> Callable[[Results], float | None]:
    """Return how to find the ratio at the edge, by the rule that is harder for Moorage.

    Without a pause, so that it waits for the scores; and until the last byte of each answer, for
    what kube-scheduler needs to decode the answers is the same for all.
    """

    def find(results: Results) -> float | None:
        return next((r.ratio_answered for r in results.edge if _is_main(r, question)), None)

    return find


def _is_main(result: EdgeResult, question: str) -> bool:
    return result.contender == MAIN and result.question == question and not result.pause


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


BUDGETS = (
    Budget(
        work="filter + prioritize, 5,000 names, 3 filters and 3 scores",
        limit=0.6,
        measured=_edge("5000 names"),
    ),
    Budget(
        work="filter + prioritize, 500 names, 3 filters and 3 scores",
        limit=1.5,
        measured=_edge("500 names"),
    ),
    Budget(
        work="filter + prioritize, 5,000 whole nodes, 3 filters and 3 scores",
        limit=0.3,
        measured=_edge("5000 whole nodes"),
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
)
