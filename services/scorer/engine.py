"""Runs a profile's score plugins for one pod.

Pure: it knows plugins and snapshots, no transport and no clock; whoever calls it brings a
supervisor. A plugin that fails has no opinion: unless its failure aborts the cycle, neither its
scores nor its weight count.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from moorage import Nodes, PluginFailedError, Pod, Scores
from moorage.execution import (
    EnabledPlugin,
    PluginRun,
    PluginScores,
    Profile,
    Supervisor,
    ask_for_raw_scores,
    ask_for_scores,
    ask_to_normalize,
)
from moorage_host.plugins.ranking import weighted_mean

Opinion = TypeVar("Opinion")


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
    scores = await _ask_each(
        profile.plugins,
        supervisor,
        lambda enabled: ask_for_scores(enabled, pod, nodes, supervisor),
    )
    return _ranked(list(scores.values()), supervisor)


async def run_shard(
    profile: Profile,
    pod: Pod,
    nodes: Nodes,
    supervisor: Supervisor,
    *,
    rows: npt.NDArray[np.intp],
) -> ScoreRun:
    """Score those of *nodes* that are in *rows*; other replicas score the others.

    Raises the same as `run_scores`.
    """
    shard = nodes.where(np.isin(nodes.rows, rows))
    raw = await _ask_each(
        profile.plugins,
        supervisor,
        lambda enabled: ask_for_raw_scores(enabled, pod, nodes, shard, supervisor),
    )
    return ScoreRun(plugins=supervisor.runs, raw=raw)


async def run_normalization(
    profile: Profile,
    pod: Pod,
    nodes: Nodes,
    supervisor: Supervisor,
    *,
    raw: Mapping[str, Scores],
) -> ScoreRun:
    """Rank *nodes* by the raw scores of all shards; plugins without an opinion are left out.

    Raises the same as `run_scores`.
    """
    scores = await _ask_each(
        [enabled for enabled in profile.plugins if enabled.name in raw],
        supervisor,
        lambda enabled: ask_to_normalize(enabled, pod, nodes, raw[enabled.name], supervisor),
    )
    return _ranked(list(scores.values()), supervisor)


async def _ask_each(
    plugins: Sequence[EnabledPlugin],
    supervisor: Supervisor,
    ask: Callable[[EnabledPlugin], Awaitable[Opinion | None]],
) -> dict[str, Opinion]:
    """Return the opinions by plugin, in order; note who has none, and why."""
    opinions: dict[str, Opinion] = {}
    for enabled in plugins:
        report = supervisor.begin(enabled)
        try:
            opinion = await ask(enabled)
        except PluginFailedError as error:
            if enabled.aborts:
                raise
            report.failure = error.problem
            continue
        report.skipped = opinion is None
        if opinion is not None:
            opinions[enabled.name] = opinion
    return opinions


def _ranked(scores: Sequence[PluginScores], supervisor: Supervisor) -> ScoreRun:
    totals = weighted_mean([(each.weight, each.normalized) for each in scores])
    return ScoreRun(totals=totals, scores=scores, plugins=supervisor.runs)
