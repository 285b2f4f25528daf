"""Runs a profile's score plugins for one pod.

Pure: it knows plugins and snapshots, no transport and no clock; whoever calls it brings a
supervisor. A plugin that fails has no opinion: unless its failure aborts the cycle, neither its
scores nor its weight count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from moorage import Nodes, PluginFailedError, Pod, Scores
from moorage.runtime import PluginRun, PluginScores, Profile, Supervisor, ask_for_scores


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRun:
    """The outcome of a cycle.

    Attributes:
        totals: For each node the mean of the normalised scores by weight, 0..100; None if no plugin
            had an opinion.
        scores: The opinions that make up the totals, in order.
        plugins: What each plugin did, in order.
    """

    totals: Scores | None
    scores: Sequence[PluginScores]
    plugins: Sequence[PluginRun]


async def run_scores(profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor) -> ScoreRun:
    """Rank *nodes*.

    Raises:
        PluginFailedError: A plugin failed whose failure aborts the cycle.
        TimeoutError: The supervisor's deadline passed.
    """
    scores: list[PluginScores] = []
    for enabled in profile.plugins:
        report = supervisor.begin(enabled)
        try:
            opinion = await ask_for_scores(enabled, pod, nodes, supervisor)
        except PluginFailedError as error:
            if enabled.aborts:
                raise
            report.failure = error.problem
            continue
        report.skipped = opinion is None
        if opinion is not None:
            scores.append(opinion)
    return ScoreRun(totals=_totals(scores), scores=scores, plugins=supervisor.runs)


def _totals(scores: Sequence[PluginScores]) -> Scores | None:
    if not scores:
        return None
    total: Scores = scores[0].weight * scores[0].normalized
    for opinion in scores[1:]:
        total += opinion.weight * opinion.normalized
    return total / sum(opinion.weight for opinion in scores)
