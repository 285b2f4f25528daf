"""Runs a profile's filter plugins for one pod, and the trial placement of its group.

Pure: it knows plugins and snapshots, no transport and no clock; whoever calls it brings a
supervisor.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from moorage import Nodes, PluginFailedError, Pod
from moorage.execution import (
    FilterRun,
    PluginRejection,
    PluginRun,
    Profile,
    Supervisor,
    Trial,
    ask_for_group,
    run_filter_plugins,
    tried,
)


async def run_filters(
    profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> FilterRun:
    """Split *nodes* into feasible and rejected ones.

    Raises:
        PluginFailedError: A plugin failed whose failure aborts the cycle.
        TimeoutError: The supervisor's deadline passed.
    """
    for enabled in profile.plugins:
        if enabled.may_group:
            apart = msgspec.structs.replace(supervisor, runs=[])
            try:
                group = ask_for_group(enabled, pod, nodes, apart)
            except PluginFailedError:
                if enabled.aborts:
                    raise
                continue
            if group is not None:
                async with tried(enabled, group, profile, pod, nodes, apart) as trial:
                    run = await run_filter_plugins(profile, pod, nodes, supervisor)
                return _of_group(run, trial)
    return await run_filter_plugins(profile, pod, nodes, supervisor)


def _of_group(run: FilterRun, trial: Trial) -> FilterRun:
    """Return what a trial makes of the verdicts: no node if the group does not fit."""
    if trial.nodes:
        claimants = [trial.plugin, *(name for name in run.claimants if name != trial.plugin)]
        return msgspec.structs.replace(run, claimants=claimants, trial=trial)
    rejection = PluginRejection(trial.plugin, trial.reason, cured_by=trial.cured_by)
    codes = np.where(run.codes == 0, len(run.reasons) + 1, run.codes).astype(np.uint16)
    return msgspec.structs.replace(
        run, codes=codes, reasons=[*run.reasons, rejection], claimants=(), trial=trial
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
        trial=next((part.trial for part in parts if part.trial is not None), None),
    )
