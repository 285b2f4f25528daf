"""Runs a profile's score plugins for one pod.

Pure: it knows plugins and snapshots, no transport and no clock; whoever calls it brings a
supervisor. A plugin that fails has no opinion: unless its failure aborts the cycle, neither its
scores nor its weight count.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moorage import Nodes, PluginFailedError, Pod, ScorePlugin, Scores
from moorage.plugin import MAX_SCORE, WrongAnswerError, WrongTypeError
from moorage.runtime import EnabledPlugin, PluginRun, Profile, Supervisor


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginScores:
    """One plugin's opinion of all nodes: as returned, and after normalisation to 0..100."""

    plugin: str
    weight: int
    raw: Scores
    normalized: Scores


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
            opinion = await _scores(enabled, pod, nodes, supervisor)
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
    matrix = np.stack([opinion.normalized for opinion in scores])
    return np.average(matrix, axis=0, weights=[opinion.weight for opinion in scores])


async def _scores(
    enabled: EnabledPlugin, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> PluginScores | None:
    """Return the plugin's opinion of *nodes*, or None if it has nothing to say about *pod*."""
    plugin = enabled.plugin
    assert isinstance(plugin, ScorePlugin)  # noqa: S101 - the registry holds nothing else
    per_node = type(plugin).score is ScorePlugin.score
    point = "score_node" if per_node else "score"
    enabled.check_not_suspended(point)
    preparation = await supervisor.prepare(enabled, pod, nodes)
    if preparation is not None and preparation.skip:
        return None
    raw = supervisor.call(
        enabled, point, lambda: _checked(plugin.score, plugin.score(pod, nodes), len(nodes))
    )
    normalized = supervisor.call(enabled, "normalize", lambda: _normalized(plugin, raw))
    enabled.breaker.succeeded()
    return PluginScores(plugin=plugin.name, weight=enabled.weight, raw=raw, normalized=normalized)


def _normalized(plugin: ScorePlugin, raw: Scores) -> Scores:
    # A copy, because a plugin may normalise in place.
    normalized = _checked(plugin.normalize, plugin.normalize(raw.copy()), len(raw))
    outside = (normalized < 0) | (normalized > MAX_SCORE)
    if outside.any():
        kept = type(plugin).normalize is ScorePlugin.normalize
        problem = f"returned {normalized[outside][0]:g}, which is outside 0..{MAX_SCORE}"
        if kept:
            raise WrongAnswerError(plugin.score, f"{problem}; override normalize")
        raise WrongAnswerError(plugin.normalize, problem)
    return normalized


def _checked(method: Callable[..., object], scores: npt.ArrayLike, count: int) -> Scores:
    try:
        array = np.array(scores, np.float64)
    except (TypeError, ValueError) as error:
        raise WrongTypeError(method, scores, "one number for each node") from error
    if array.shape != (count,):
        raise WrongAnswerError(
            method, f"returned an array of shape {array.shape} for {count} nodes"
        )
    if not np.isfinite(array).all():
        raise WrongAnswerError(method, "returned a number that is not finite")
    return array
