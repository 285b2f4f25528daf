"""Runs the filter plugins of a profile on the nodes for one pod.

As in kube-scheduler, plugins run in order, each on the nodes that all before it let pass, and the
first to reject a node gives its reason.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.execution.asking import ask_for_claim, ask_for_verdicts
from moorage.execution.cycle import PluginRun, Supervisor, ask_each
from moorage.execution.enabled import EnabledPlugin, Profile
from moorage.groups import Trial
from moorage.in_tree.filters.node_resources_fit import NodeResourcesFit
from moorage.models import Pod
from moorage.snapshot import Nodes
from moorage.snapshot.verdicts import Rejection, Verdicts

LONGEST_REASON = 1024
"""Characters of a reason; what a longer one lists is cut, with how much more there is."""

MOST_REASONS = 1000
"""Different reasons of an answer, which so has a MiB of them at most."""

OTHER_REASONS = "more different reasons than an answer can have"
"""What stands for those beyond."""


class PluginRejection(msgspec.Struct, frozen=True, gc=False):
    """Why a plugin rejects nodes.

    Preempting pods does not help if that is unresolvable. `cured_by` is "capacity" if a new node
    would not be rejected.
    """

    plugin: str
    text: str
    unresolvable: bool = False
    cured_by: str = ""

    @property
    def reasons(self) -> Sequence[str]:
        """What is counted one by one: all that is short on a node is in one text."""
        return self.text.split(", ") if self.plugin == NodeResourcesFit.name else (self.text,)


class FilterRun(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a cycle.

    Attributes:
        codes: For each node 0 if it is feasible, i if `reasons[i - 1]` rejects it.
        reasons: Why nodes were rejected.
        plugins: What each plugin did, in order.
        claimants: The plugins that want the pod to claim one of the feasible nodes at once.
        trial: How the trial placement of the pod's group ended; None for a pod without a group.
    """

    codes: npt.NDArray[np.uint16]
    reasons: Sequence[PluginRejection]
    plugins: Sequence[PluginRun]
    claimants: Sequence[str] = ()
    trial: Trial | None = None

    def rejection(self, position: int) -> PluginRejection | None:
        """Return why the node at *position* is rejected, None if it is feasible."""
        code = int(self.codes[position])
        return self.reasons[code - 1] if code else None


async def run_filter_plugins(
    profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor
) -> FilterRun:
    """Split *nodes* into feasible and rejected ones, whatever group the pod is of.

    Raises:
        PluginFailedError: A plugin failed whose failure aborts the cycle.
        TimeoutError: The supervisor's deadline passed.
    """
    codes: npt.NDArray[np.uint16] | None = None
    reasons: list[PluginRejection] = []
    claimants: list[str] = []
    survivors = nodes

    async def judge(enabled: EnabledPlugin) -> Verdicts | None:
        nonlocal survivors
        verdicts = await ask_for_verdicts(enabled, pod, survivors, supervisor)
        if enabled.may_claim and ask_for_claim(enabled, pod, supervisor):
            claimants.append(enabled.name)
        if verdicts is not None and verdicts.reasons:
            survivors = survivors.where(verdicts.passed)
        return verdicts

    plugins = profile.plugins if nodes.rows.size else ()
    answers = await ask_each(plugins, judge, supervisor, until=lambda: not survivors.rows.size)
    for enabled, verdicts in answers:
        if not verdicts.reasons:
            continue
        if codes is None:
            codes = verdicts.codes.copy()
        else:
            codes[codes == 0] = np.where(verdicts.passed, 0, verdicts.codes + len(reasons))
        default = enabled.plugin.cured_by
        for reason in verdicts.reasons:
            kept = reason if len(reason.reason) <= LONGEST_REASON else _cut(reason)
            cured_by = "capacity" if (reason.cured_by or default) == "capacity" else ""
            reasons.append(PluginRejection(enabled.name, kept.reason, kept.unresolvable, cured_by))
    if codes is not None and len(reasons) > MOST_REASONS:
        codes, reasons = _limited(codes, reasons)
    return FilterRun(
        codes=np.zeros(nodes.rows.size, np.uint16) if codes is None else codes,
        reasons=reasons,
        plugins=supervisor.runs,
        claimants=claimants if survivors.rows.size else (),
    )


def _cut(rejection: Rejection) -> Rejection:
    """Return a rejection whose text has a length that every caller can take."""
    text = rejection.reason
    head = text[:LONGEST_REASON].rpartition(", ")[0] or text[:LONGEST_REASON]
    more = text[len(head) :].count(", ")
    return Rejection(f"{head} and {more} more" if more else f"{head}…", rejection.unresolvable)


def _limited(
    codes: npt.NDArray[np.uint16], reasons: Sequence[PluginRejection]
) -> tuple[npt.NDArray[np.uint16], list[PluginRejection]]:
    """Put one reason of each plugin for all those beyond the limit."""
    numbers = {reason: number for number, reason in enumerate(reasons[:MOST_REASONS], start=1)}
    table = [0, *numbers.values()]
    for reason in reasons[MOST_REASONS:]:
        merged = PluginRejection(reason.plugin, OTHER_REASONS, reason.unresolvable, reason.cured_by)
        table.append(numbers.setdefault(merged, len(numbers) + 1))
    return np.array(table, np.uint16)[codes], list(numbers)
