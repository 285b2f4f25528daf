"""Runs a profile's filter plugins for one pod.

Pure: it knows plugins and snapshots, no transport and no clock; whoever calls it brings a
supervisor. As in kube-scheduler, plugins run in the order of the profile, each on the nodes that
all before it let pass, and the first to reject a node gives its reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moorage import Nodes, PluginFailedError, Pod, Rejection
from moorage.runtime import PluginRun, Profile, Supervisor, ask_for_claim, ask_for_verdicts


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
        claimants: The plugins that want the pod to claim one of the feasible nodes at once.
    """

    codes: npt.NDArray[np.uint16]
    reasons: Sequence[PluginRejection]
    plugins: Sequence[PluginRun]
    claimants: Sequence[str]


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
    claimants: list[str] = []
    survivors = nodes
    positions = np.arange(len(nodes))
    for enabled in profile.plugins:
        if not len(survivors):
            break
        report = supervisor.begin(enabled)
        try:
            verdicts = await ask_for_verdicts(enabled, pod, survivors, supervisor)
            if verdicts is not None and ask_for_claim(enabled, pod, supervisor):
                claimants.append(enabled.name)
        except PluginFailedError as error:
            if enabled.aborts:
                raise
            report.failure = error.problem
            continue
        report.skipped = verdicts is None
        if verdicts is None or not verdicts.reasons:
            continue
        rejected = ~verdicts.passed
        codes[positions[rejected]] = verdicts.codes[rejected] + len(reasons)
        reasons += [PluginRejection(enabled.name, reason) for reason in verdicts.reasons]
        survivors, positions = survivors.where(verdicts.passed), positions[verdicts.passed]
    return FilterRun(
        codes=codes,
        reasons=reasons,
        plugins=supervisor.runs,
        claimants=claimants if len(survivors) else (),
    )
