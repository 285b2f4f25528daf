"""Runs a profile's filter plugins for one pod.

Pure: it knows plugins and snapshots, no transport and no clock; whoever calls it brings a
supervisor. As in kube-scheduler, plugins run in the order of the profile, each on the nodes that
all before it let pass, and the first to reject a node gives its reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moorage import FilterPlugin, Mask, Nodes, PluginFailedError, Pod, Rejection, Verdicts
from moorage.plugin import WrongAnswerError, WrongTypeError
from moorage.runtime import EnabledPlugin, PluginRun, Profile, Supervisor


@dataclass(frozen=True, slots=True)
class PluginRejection:
    """A rejection with the name of the plugin that made it."""

    plugin: str
    rejection: Rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRun:
    """The outcome of a cycle.

    Attributes:
        codes: For each node 0 if it is feasible, i if `reasons[i - 1]` rejects it.
        reasons: Why nodes were rejected.
        plugins: What each plugin did, in order.
    """

    codes: npt.NDArray[np.uint16]
    reasons: Sequence[PluginRejection]
    plugins: Sequence[PluginRun]


async def run_filters(
    profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> FilterRun:
    """Split *nodes* into feasible and rejected ones.

    Raises:
        PluginFailedError: A plugin failed whose failure aborts the cycle.
        TimeoutError: The supervisor's deadline passed.
    """
    codes = np.zeros(len(nodes), np.uint16)
    reasons: list[PluginRejection] = []
    survivors = nodes
    positions = np.arange(len(nodes))
    for enabled in profile.plugins:
        if not len(survivors):
            break
        report = supervisor.begin(enabled)
        try:
            verdicts = await _verdicts(enabled, pod, survivors, supervisor)
        except PluginFailedError as error:
            if enabled.aborts:
                raise
            report.failure = error.problem
            continue
        report.skipped = verdicts is None
        if verdicts is None or verdicts.passed.all():
            continue
        rejected = ~verdicts.passed
        codes[positions[rejected]] = verdicts.codes[rejected] + len(reasons)
        reasons += [PluginRejection(enabled.name, reason) for reason in verdicts.reasons]
        survivors, positions = survivors.where(verdicts.passed), positions[verdicts.passed]
    return FilterRun(codes=codes, reasons=reasons, plugins=supervisor.runs)


async def _verdicts(
    enabled: EnabledPlugin, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> Verdicts | None:
    """Return the plugin's verdicts on *nodes*, or None if it has nothing to say about *pod*."""
    plugin = enabled.plugin
    assert isinstance(plugin, FilterPlugin)  # noqa: S101 - the registry holds nothing else
    per_node = type(plugin).filter is FilterPlugin.filter
    point = "filter_node" if per_node else "filter"
    enabled.check_not_suspended(point)
    preparation = await supervisor.prepare(enabled, pod, nodes)
    if preparation is not None and preparation.skip:
        return None
    kept = nodes if preparation is None or preparation.nodes is None else preparation.nodes
    verdicts = supervisor.call(enabled, point, lambda: _ask(plugin, pod, nodes, kept))
    enabled.breaker.succeeded()
    return verdicts


def _ask(plugin: FilterPlugin, pod: Pod, nodes: Nodes, kept: Nodes) -> Verdicts:
    if kept is nodes:
        return _checked(plugin, plugin.filter(pod, nodes), len(nodes))
    return _narrowed(plugin, pod, nodes, np.isin(nodes.rows, kept.rows))


def _narrowed(plugin: FilterPlugin, pod: Pod, nodes: Nodes, kept: Mask) -> Verdicts:
    """Reject the nodes that `prepare` left out, and ask the plugin about the others, if any."""
    reason = Rejection(f"node(s) didn't satisfy plugin(s) [{plugin.name}]")
    verdicts = nodes.verdicts().reject(~kept, reason)
    if not kept.any():
        return verdicts
    inner = _checked(plugin, plugin.filter(pod, nodes.where(kept)), int(kept.sum()))
    for code, rejection in enumerate(inner.reasons, start=1):
        mask = np.zeros(len(nodes), np.bool_)
        mask[np.flatnonzero(kept)[inner.codes == code]] = True
        verdicts.reject(mask, rejection)
    return verdicts


def _checked(plugin: FilterPlugin, verdicts: object, count: int) -> Verdicts:
    if not isinstance(verdicts, Verdicts):
        raise WrongTypeError(plugin.filter, verdicts, "Verdicts")
    if len(verdicts.codes) != count:
        problem = f"returned {len(verdicts.codes)} verdicts for {count} nodes"
        raise WrongAnswerError(plugin.filter, problem)
    if verdicts.codes.max(initial=0) > len(verdicts.reasons):
        raise WrongAnswerError(plugin.filter, "returned codes without reasons")
    for rejection in verdicts.reasons:
        if not isinstance(rejection.reason, str):
            raise WrongTypeError(plugin.filter, rejection.reason, "text as the reason")
    return verdicts
