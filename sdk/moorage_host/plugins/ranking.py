"""Runs the score plugins of a profile on the nodes for one pod: from their scores to a ranking.

A plugin that fails has no opinion: unless its failure aborts the cycle, neither its scores nor its
weight count.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import numpy as np
import numpy.typing as npt

from moorage import Nodes, Pod, Scores
from moorage.execution import (
    EnabledPlugin,
    PluginRun,
    PluginScores,
    Profile,
    Supervisor,
    ask_each,
    ask_for_scores,
)

FEW = 16
"""So many maxima are found one by one, in less time than by sorting."""


Single = npt.NDArray[np.float32]
"""Scores in single precision."""


class ScoreRun(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a cycle.

    Attributes:
        totals: For each node the mean of the normalised scores by weight, 0..100; None if no plugin
            had an opinion.
        scores: The opinions that make up the totals, in order.
        plugins: What each plugin did, in order.
        raw: Of a shard: the raw scores of each plugin with an opinion, in order.
    """

    totals: Scores | None = None
    scores: Sequence[PluginScores] = ()
    plugins: Sequence[PluginRun]
    raw: Mapping[str, Scores] = msgspec.field(default_factory=dict)


async def run_scores(profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor) -> ScoreRun:
    """Rank *nodes*.

    Raises:
        PluginFailedError: A plugin failed whose failure aborts the cycle.
        TimeoutError: The supervisor's deadline passed.
    """
    ask = partial(ask_for_scores, pod=pod, nodes=nodes, supervisor=supervisor)
    return ranked(await ask_each(profile.plugins, ask, supervisor), supervisor)


def ranked(
    answers: Sequence[tuple[EnabledPlugin, PluginScores]], supervisor: Supervisor
) -> ScoreRun:
    """Return what plugins with an opinion make of the nodes."""
    scores = [opinion for _, opinion in answers]
    totals = weighted_mean([(each.weight, each.normalized) for each in scores])
    return ScoreRun(totals=totals, scores=scores, plugins=supervisor.runs)


def compact(raw: Scores, normalized: Scores) -> tuple[Single | Scores, Single]:
    """Return scores in less room: decisions keep them, and replicas send them, for every node.

    Raw scores get single precision if that is exact; normalised ones get it anyway, and are the
    same array if they are equal.
    """
    with np.errstate(over="ignore"):
        single = raw.astype(np.float32)
    kept = single if np.array_equal(single, raw) else raw
    rounded = normalized.astype(np.float32)
    return kept, single if kept is single and np.array_equal(single, rounded) else rounded


def weighted_mean(scores: Sequence[tuple[int, Scores]]) -> Scores | None:
    """Return the mean of normalised scores by weight, 0..100; None if there are none."""
    if not scores:
        return None
    (weight, first), *rest = scores
    total: Scores = weight * first
    for more, normalized in rest:
        total += more * normalized
        weight += more
    return total / weight


def best(totals: Single | Scores, count: int) -> list[int]:
    """Return where the largest totals stand, best first; equal ones keep their order."""
    order: list[int]
    if count > FEW:
        order = (-totals).argsort(kind="stable")[:count].tolist()
        return order
    left, order = totals.copy(), []
    for _ in range(min(count, len(totals))):
        order.append(int(left.argmax()))  # the first of equal ones
        left[order[-1]] = -1  # totals are at least 0
    return order
