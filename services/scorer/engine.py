"""Runs a profile's score plugins for one pod.

Pure: it knows plugins and snapshots, no transport and no clock; whoever calls it brings a
supervisor. A plugin that fails has no opinion: unless its failure aborts the cycle, neither its
scores nor its weight count.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from moorage import Nodes, PluginFailedError, Pod, Scores
from moorage.execution import (
    PluginRun,
    PluginScores,
    Profile,
    Supervisor,
    ask_for_raw_scores,
    ask_to_normalize,
)
from moorage_host.plugins.ranking import ScoreRun, total_of


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
    shard, raw = nodes.where(np.isin(nodes.rows, rows)), dict[str, Scores]()
    for enabled in profile.plugins:
        report = supervisor.begin(enabled)
        try:
            scores = await ask_for_raw_scores(enabled, pod, nodes, shard, supervisor)
        except PluginFailedError as error:
            if enabled.aborts:
                raise
            report.failure = error.problem
            continue
        report.skipped = scores is None
        if scores is not None:
            raw[enabled.name] = scores
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
    scores: list[PluginScores] = []
    for enabled in profile.plugins:
        given = raw.get(enabled.name)
        if given is None:
            continue
        report = supervisor.begin(enabled)
        try:
            opinion = await ask_to_normalize(enabled, pod, nodes, given, supervisor)
        except PluginFailedError as error:
            if enabled.aborts:
                raise
            report.failure = error.problem
            continue
        report.skipped = opinion is None
        if opinion is not None:
            scores.append(opinion)
    return ScoreRun(totals=total_of(scores), scores=scores, plugins=supervisor.runs)


def continued(runs: Sequence[PluginRun], later: Sequence[PluginRun]) -> Sequence[PluginRun]:
    """Return what plugins did in scoring, with what some of them did *later*, in normalising."""
    after = {run.plugin: run for run in later}
    for run in runs:
        if normalizing := after.get(run.plugin):
            run.seconds += normalizing.seconds
            run.failure = run.failure or normalizing.failure
            run.note = normalizing.note or run.note
    return runs
