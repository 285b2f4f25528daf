"""The budgets of the design, and whether a run kept them.

Without another unit they are ratios to the Go extender that does nothing, measured in the same run
on the same machine.
"""

from collections.abc import Iterator
from math import log
from statistics import linear_regression

from bench.cluster.cases import HEAVY, LIGHT, MOORAGE, MOORAGE_BINDS, MOORAGE_UNLIKE
from bench.edge import MAIN, NUMBERED, PER_NODE
from bench.results import CLUSTER, EDGE, GROWTH, Results, Verdict

MIB = 1 << 20

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

MOST_GROWTH, MOST_MEMORY = 1.05, 350


def verdicts(results: Results) -> Iterator[Verdict]:
    """Judge a run by all budgets; what was not measured is neither kept nor missed."""
    # At the edge without a pause, so that prioritize waits for the scores, which is harder; and
    # until the last byte of each answer, as kube-scheduler needs the same time to decode all.
    edge = {(r.question, r.contender): r.ratio_answered for r in results.edge if not r.pause}
    for question, contender, limit in EDGE_LIMITS:
        work = f"filter + prioritize, {question}, {contender}"
        yield _at_most(EDGE, work, limit, edge.get((question, contender)))
    rows = {(row.cluster, row.contender): row for row in results.scheduling}
    for cluster in (HEAVY, LIGHT):
        for contender, least, _ in CLUSTER_LIMITS:
            row = rows.get((cluster, contender))
            yield Verdict(
                part=CLUSTER,
                work=f"pods/s, {cluster} cluster, {contender}",
                bound=f"at least {least:g} x",
                measured=None if row is None else row.ratio,
                kept=None if row is None else row.ratio >= least,
            )
    for cluster in (HEAVY, LIGHT):
        for contender, _, most in CLUSTER_LIMITS:
            row = rows.get((cluster, contender))
            work = f"processor time a pod of all processes, {cluster} cluster, {contender}"
            yield _at_most(CLUSTER, work, most, None if row is None else row.processor_ratio)
    work = "exponent of growth with the nodes; 1 is linear, the rest is for noise"
    yield _at_most(GROWTH, work, MOST_GROWTH, _growth(results))
    work = "memory of the largest process, 5,000 nodes with 150,000 pods"
    yield _at_most(GROWTH, work, MOST_MEMORY, _memory(results), "MB")


def kept(judged: list[Verdict]) -> bool:
    """Whether no budget was missed; what was not measured was not missed."""
    return not any(verdict.kept is False for verdict in judged)


def _at_most(
    part: str, work: str, limit: float, measured: float | None, unit: str = "x"
) -> Verdict:
    return Verdict(
        part=part,
        work=work,
        bound=f"at most {limit:g} {unit}",
        measured=measured,
        kept=None if measured is None else measured <= limit,
        unit=unit,
    )


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


def _memory(results: Results) -> float | None:
    """Return the MB of the largest process with 5,000 nodes."""
    sizes = [size for size in results.growth if size.nodes == MEMORY_NODES]
    found = (one.pss for size in sizes for one in size.memory.values())
    return max((pss * MIB / 1e6 for pss in found), default=None)
