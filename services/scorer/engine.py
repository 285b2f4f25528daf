"""Runs a profile's score plugins for one pod.

Pure: it knows plugins and snapshots, no transport and no clock; whoever calls it brings a
supervisor. A plugin that fails has no opinion: unless its failure aborts the cycle, neither its
scores nor its weight count.
"""

from collections.abc import Mapping, Sequence
from functools import partial

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
    ask_for_raw_scores,
    ask_to_normalize,
)
from moorage_host.plugins.ranking import ScoreRun, ranked


async def run_shard(
    profile: Profile,
    pod: Pod,
    nodes: Nodes,
    supervisor: Supervisor,
    *,
    rows: npt.NDArray[np.intp],
) -> ScoreRun:
    """Score those of *nodes* that are in *rows*: other replicas, or the gateway, know the others.

    Raises the same as `run_scores`.
    """
    shard = nodes.where(np.isin(nodes.rows, rows))
    ask = partial(ask_for_raw_scores, pod=pod, nodes=nodes, shard=shard, supervisor=supervisor)
    answers = await ask_each(profile.plugins, ask, supervisor)
    raw = {enabled.name: scores for enabled, scores in answers}
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

    async def normalize(enabled: EnabledPlugin) -> PluginScores | None:
        return await ask_to_normalize(enabled, pod, nodes, raw[enabled.name], supervisor)

    plugins = [enabled for enabled in profile.plugins if enabled.name in raw]
    return ranked(await ask_each(plugins, normalize, supervisor), supervisor)


def continued(runs: Sequence[PluginRun], later: Sequence[PluginRun]) -> Sequence[PluginRun]:
    """Return what plugins did in scoring, with what some of them did *later*, in normalising."""
    after = {run.plugin: run for run in later}
    for run in runs:
        if normalizing := after.get(run.plugin):
            run.seconds += normalizing.seconds
            run.failure = run.failure or normalizing.failure
            run.note = normalizing.note or run.note
    return runs
