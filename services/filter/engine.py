"""Runs a profile's filter plugins for one pod.

Pure: it knows plugins and snapshots, no transport and no clock; whoever calls it brings a
supervisor. As in kube-scheduler, plugins run in the order of the profile, each on the nodes that
all before it let pass, and the first to reject a node gives its reason.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from moorage import Nodes, PluginFailedError, Pod, Rejection
from moorage.execution import PluginRun, Profile, Supervisor, ask_for_claim, ask_for_verdicts


class PluginRejection(msgspec.Struct, frozen=True):
    """A rejection with the name of the plugin that made it."""

    plugin: str
    rejection: Rejection


class FilterRun(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a cycle.

    Attributes:
        codes: For each node 0 if it is feasible, i if `reasons[i - 1]` rejects it.
        reasons: Why nodes were rejected.
        plugins: What each plugin did, in order.
        claimants: The plugins that want the pod to claim one of the feasible nodes at once.
        cached_nodes: How many verdicts come from an equal pod.
        cached_from: That pod, as NAMESPACE/NAME; empty if there are none.
    """

    codes: npt.NDArray[np.uint16]
    reasons: Sequence[PluginRejection]
    plugins: Sequence[PluginRun]
    claimants: Sequence[str] = ()
    cached_nodes: int = 0
    cached_from: str = ""


async def run_filters(
    profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> FilterRun:
    """Split *nodes* into feasible and rejected ones.

    Raises:
        PluginFailedError: A plugin failed whose failure aborts the cycle.
        TimeoutError: The supervisor's deadline passed.
    """
    codes: npt.NDArray[np.uint16] | None = None
    reasons: list[PluginRejection] = []
    claimants: list[str] = []
    survivors = nodes
    for enabled in profile.plugins:
        if not survivors.rows.size:
            break
        report = supervisor.begin(enabled)
        try:
            verdicts = await ask_for_verdicts(enabled, pod, survivors, supervisor)
            if (
                verdicts is not None
                and enabled.may_claim
                and ask_for_claim(enabled, pod, supervisor)
            ):
                claimants.append(enabled.name)
        except PluginFailedError as error:
            if enabled.aborts:
                raise
            report.failure = error.problem
            continue
        report.skipped = verdicts is None
        if verdicts is None or not verdicts.reasons:
            continue
        passed = verdicts.passed
        if codes is None:
            codes = verdicts.codes.copy()
        else:
            codes[codes == 0] = np.where(passed, 0, verdicts.codes + len(reasons))
        reasons += [PluginRejection(enabled.name, reason) for reason in verdicts.reasons]
        survivors = survivors.where(passed)
    return FilterRun(
        codes=np.zeros(nodes.rows.size, np.uint16) if codes is None else codes,
        reasons=reasons,
        plugins=supervisor.runs,
        claimants=claimants if survivors.rows.size else (),
    )


def joined_verdicts(parts: Sequence[FilterRun], runs: Sequence[PluginRun]) -> FilterRun:
    """Return the verdicts on several parts of the nodes as one; *runs* is what plugins did."""
    reasons: dict[PluginRejection, int] = {}
    codes: list[npt.NDArray[np.uint16]] = []
    for part in parts:
        numbers = [reasons.setdefault(reason, len(reasons) + 1) for reason in part.reasons]
        codes.append(np.array([0, *numbers], np.uint16)[part.codes])
    return FilterRun(
        codes=np.concatenate(codes),
        reasons=list(reasons),
        plugins=runs,
        claimants=list(dict.fromkeys(name for part in parts for name in part.claimants)),
    )
