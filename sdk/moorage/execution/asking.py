"""Asks one plugin about the nodes of one cycle, and checks its answer.

The engines of the filter and scorer services call this for each plugin of a profile,
`moorage.testing` for the one under test.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.errors import PluginFailedError
from moorage.execution.cycle import Supervisor, failed
from moorage.execution.enabled import EnabledPlugin
from moorage.models import Pod
from moorage.plugin.errors import WrongAnswerError, WrongTypeError
from moorage.plugin.hooks import FilterPlugin, ScorePlugin, normalization_of
from moorage.plugin.normalization import MAX_SCORE, Normalization, Scores
from moorage.snapshot import Nodes
from moorage.snapshot.verdicts import Mask, Rejection, Verdicts


class PluginScores(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin's scores of all nodes: as returned, and after normalisation to 0..100.

    The gateway keeps them in single precision where that is exact.
    """

    plugin: str
    weight: int
    raw: npt.NDArray[Any]
    normalized: npt.NDArray[Any]


class CheckedScores(NamedTuple):
    """One finite number for each of *nodes*, with the least and the most of them and 0."""

    nodes: Nodes
    scores: Scores
    least: float
    most: float


async def ask_for_verdicts(
    enabled: EnabledPlugin, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> Verdicts | None:
    """Return a filter plugin's verdicts on *nodes*, or None if it does not apply to *pod*.

    Raises:
        PluginFailedError: The plugin raised, answered wrongly, took too long, or is not called
            now because of overruns.
        TimeoutError: The supervisor's deadline passed.
    """
    plugin, kept = enabled.plugin, nodes
    assert isinstance(plugin, FilterPlugin)  # noqa: S101 - the registry holds nothing else
    point = "filter_node" if type(plugin).filter is FilterPlugin.filter else "filter"
    if enabled.prepares:
        preparation = await supervisor.prepare(enabled, pod, nodes)
        if preparation is not None:
            if preparation.skip:
                return None
            if preparation.nodes is not None:
                kept = preparation.nodes
    return supervisor.call(enabled, point, _filter, plugin, pod, nodes, kept)


def ask_for_claim(enabled: EnabledPlugin, pod: Pod, supervisor: Supervisor) -> bool:
    """Return whether a filter plugin, asked for verdicts before, wants *pod* to claim its node.

    Raises:
        PluginFailedError: The plugin raised, answered wrongly, or took too long.
        TimeoutError: The supervisor's deadline passed.
    """
    plugin = enabled.plugin
    assert isinstance(plugin, FilterPlugin)  # noqa: S101 - the registry holds nothing else
    return supervisor.call(enabled, "wants_claim", _checked_claim, plugin, pod)


async def ask_for_scores(
    enabled: EnabledPlugin, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> PluginScores | None:
    """Return a score plugin's scores of *nodes*, or None if it does not apply to *pod*.

    Raises:
        PluginFailedError: The plugin raised, answered wrongly, took too long, or is not called
            now because of overruns.
        TimeoutError: The supervisor's deadline passed.
    """
    plugin = enabled.plugin
    assert isinstance(plugin, ScorePlugin)  # noqa: S101 - the registry holds nothing else
    point = "score_node" if type(plugin).score is ScorePlugin.score else "score"
    if enabled.prepares and not await _concerns(enabled, plugin, pod, nodes, supervisor):
        return None
    raw = supervisor.call(enabled, point, _score, plugin, pod, nodes)
    return _normalized_scores(enabled, plugin, raw, supervisor)


async def ask_for_raw_scores(
    enabled: EnabledPlugin, pod: Pod, nodes: Nodes, shard: Nodes, supervisor: Supervisor
) -> Scores | None:
    """Return a score plugin's raw scores of those of *nodes* that are in *shard*.

    None and exceptions mean the same as in `ask_for_scores`.
    """
    plugin, point = _score_plugin(enabled)
    if enabled.prepares and not await _concerns(enabled, plugin, pod, nodes, supervisor):
        return None
    raw = supervisor.call(enabled, point, _score, plugin, pod, shard)
    return raw.scores


async def ask_to_normalize(
    enabled: EnabledPlugin, pod: Pod, nodes: Nodes, raw: Scores, supervisor: Supervisor
) -> PluginScores | None:
    """Return a score plugin's normalised scores of *nodes*, given the *raw* scores of all shards.

    None and exceptions mean the same as in `ask_for_scores`.
    """
    plugin, _ = _score_plugin(enabled)
    if enabled.prepares and not await _concerns(enabled, plugin, pod, nodes, supervisor):
        return None
    return _normalized_scores(enabled, plugin, _with_extremes(nodes, raw), supervisor)


def _score_plugin(enabled: EnabledPlugin) -> tuple[ScorePlugin, str]:
    """Return a plugin, and the name of the method that scores."""
    plugin = enabled.plugin
    assert isinstance(plugin, ScorePlugin)  # noqa: S101 - the registry holds nothing else
    point = "score_node" if type(plugin).score is ScorePlugin.score else "score"
    return plugin, point


async def _concerns(
    enabled: EnabledPlugin, plugin: ScorePlugin, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> bool:
    """Return whether the plugin, once it is prepared, does not skip the pod."""
    preparation = await supervisor.prepare(enabled, pod, nodes)
    if preparation is None:
        return True
    if preparation.nodes is not None and not isinstance(plugin, FilterPlugin):
        problem = "returned Preparation(nodes=...), which narrows nothing in a score plugin"
        raise failed(enabled, "prepare", WrongAnswerError(plugin.prepare, problem))
    return not preparation.skip


def _scoring(plugin: ScorePlugin) -> Callable[..., object]:
    return plugin.score_node if type(plugin).score is ScorePlugin.score else plugin.score


def _normalized_scores(
    enabled: EnabledPlugin, plugin: ScorePlugin, raw: CheckedScores, supervisor: Supervisor
) -> PluginScores:
    normalized, kind = raw.scores, type(plugin)
    if kind.normalize is not ScorePlugin.normalize or kind.normalization is not Normalization.NONE:
        normalized = supervisor.call(enabled, "normalize", _normalize, plugin, raw)
    elif raw.least < 0 or raw.most > MAX_SCORE:  # no code of the plugin, so nothing to guard
        raise _outside_range(enabled, plugin, raw)
    return PluginScores(
        plugin=enabled.name, weight=enabled.weight, raw=raw.scores, normalized=normalized
    )


def _outside_range(
    enabled: EnabledPlugin, plugin: ScorePlugin, raw: CheckedScores
) -> PluginFailedError:
    try:
        _check_range(_scoring(plugin), raw, "; set normalization or override normalize")
    except WrongAnswerError as error:
        return failed(enabled, "normalize", error)
    raise AssertionError("the scores are in range")


def _filter(plugin: FilterPlugin, pod: Pod, nodes: Nodes, kept: Nodes) -> Verdicts:
    if kept is nodes:
        return _checked_verdicts(plugin, plugin.filter(pod, nodes), len(nodes.rows))
    return _narrowed(plugin, pod, nodes, np.isin(nodes.rows, kept.rows))


def _narrowed(plugin: FilterPlugin, pod: Pod, nodes: Nodes, kept: Mask) -> Verdicts:
    """Reject the nodes that `prepare` left out, and ask the plugin about the others, if any."""
    reason = Rejection(f"node(s) didn't satisfy plugin(s) [{plugin.name}]")
    verdicts = nodes.verdicts().reject(~kept, reason)
    if not kept.any():
        return verdicts
    inner = _checked_verdicts(plugin, plugin.filter(pod, nodes.where(kept)), int(kept.sum()))
    for code, rejection in enumerate(inner.reasons, start=1):
        mask = np.zeros(len(nodes), np.bool_)
        mask[np.flatnonzero(kept)[inner.codes == code]] = True
        verdicts.reject(mask, rejection)
    return verdicts


def _checked_claim(plugin: FilterPlugin, pod: Pod) -> bool:
    wanted: object = plugin.wants_claim(pod)
    if not isinstance(wanted, bool):
        raise WrongTypeError(plugin.wants_claim, wanted, "True or False")
    return wanted


def _checked_verdicts(plugin: FilterPlugin, verdicts: object, count: int) -> Verdicts:
    if not isinstance(verdicts, Verdicts):
        raise WrongTypeError(plugin.filter, verdicts, "Verdicts")
    if verdicts.untouched and verdicts.count == count:
        return verdicts
    codes = verdicts.codes
    if len(codes) != count:
        raise WrongAnswerError(plugin.filter, f"returned {len(codes)} verdicts for {count} nodes")
    if codes.max(initial=0) > len(verdicts.reasons):
        raise WrongAnswerError(plugin.filter, "returned codes without reasons")
    for rejection in verdicts.reasons:
        if not isinstance(rejection.reason, str):
            raise WrongTypeError(plugin.filter, rejection.reason, "text as the reason")
    return verdicts


def _score(plugin: ScorePlugin, pod: Pod, nodes: Nodes) -> CheckedScores:
    method = plugin.score_node if type(plugin).score is ScorePlugin.score else plugin.score
    return _checked_scores(method, plugin.score(pod, nodes), nodes)


def _normalize(plugin: ScorePlugin, raw: CheckedScores) -> Scores:
    # A copy, because a plugin may normalise in place.
    answer = plugin.normalize(raw.scores.copy())
    normalized = _checked_scores(plugin.normalize, answer, raw.nodes)
    declared = normalization_of(type(plugin))
    if declared is None:
        _check_range(plugin.normalize, normalized)
    elif normalized.least < 0 or normalized.most > MAX_SCORE:  # no line of the plugin's normalize
        worst = _at(raw, int(raw.scores.argmin()))
        problem = f"returned {worst}, but {declared} takes no number below 0"
        raise WrongAnswerError(_scoring(plugin), problem)
    return normalized.scores


def _check_range(method: Callable[..., object], checked: CheckedScores, advice: str = "") -> None:
    if checked.least < 0 or checked.most > MAX_SCORE:
        scores = checked.scores
        worst = _at(checked, int(scores.argmin() if checked.least < 0 else scores.argmax()))
        problem = f"returned {worst}, which is outside 0..{MAX_SCORE}{advice}"
        raise WrongAnswerError(method, problem)


def _checked_scores(
    method: Callable[..., object], scores: npt.ArrayLike, nodes: Nodes
) -> CheckedScores:
    try:
        array = np.array(scores, np.float64)
    except OverflowError as error:
        raise WrongAnswerError(method, "returned a number too large for a float") from error
    except (TypeError, ValueError) as error:
        raise WrongTypeError(method, scores, "one number for each node") from error
    if array.shape != nodes.rows.shape:
        problem = f"returned an array of shape {array.shape} for {len(nodes)} nodes"
        raise WrongAnswerError(method, problem)
    least, most = np.minimum.reduce(array, initial=0), np.maximum.reduce(array, initial=0)
    checked = CheckedScores(nodes, array, least, most)
    if not (math.isfinite(least) and math.isfinite(most)):  # NaN is both, if any
        first = int(np.isfinite(array).argmin())
        raise WrongAnswerError(method, f"returned {_at(checked, first)}, which is not finite")
    return checked


def _with_extremes(nodes: Nodes, scores: Scores) -> CheckedScores:
    least, most = np.minimum.reduce(scores, initial=0), np.maximum.reduce(scores, initial=0)
    return CheckedScores(nodes, scores, least, most)


def _at(checked: CheckedScores, index: int) -> str:
    """Return one of the scores, and for which node it is."""
    return f"{checked.scores[index]:g} for node {checked.nodes.name(index)}"
