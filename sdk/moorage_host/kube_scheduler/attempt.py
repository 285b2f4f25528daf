"""What an attempt to schedule a pod found out, and the sentence that users read about it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from moorage.execution import PluginRejection, PluginScores
from moorage_host.kube_scheduler.cache import KnownPod

EXTENDER = "Extender"
"""What kube-scheduler writes for the plugin if an extender rejected a node."""

Reason = Literal["Unschedulable", "SchedulerError"]
"""Why an attempt did not place its pod, as its condition has it."""

Points: TypeAlias = npt.NDArray[np.int64]
"""One whole number for each node; sums wrap around as in Go."""


class NoNodesError(Exception):
    """The cluster is empty."""

    def __str__(self) -> str:
        return "no nodes available to schedule pods"


@dataclass(slots=True, kw_only=True)
class SchedulingAttempt:
    """One attempt, as far as it has come.

    Attributes:
        pod: The pod.
        nodes: How many nodes the cluster has.
        rejections: Why nodes were rejected, by name.
        plugins: Which plugins rejected some; decides which cluster events allow another attempt.
        elsewhere: The reason of nodes that were not evaluated, if there is one.
        conflict: Why no node was evaluated at all; empty if nodes were.
        offered: How many nodes the extenders were asked about; 0 if they were not asked.
        accepted: How many of these they accepted.
        feasible: How many nodes passed all filters.
        nominated: Whether the pod got the node that preemption had held for it.
        names: The nodes that were scored; empty if there was no choice.
        in_tree: What each in-tree plugin gave them, 0 to a node that the cluster does not have.
        in_tree_points: The weighted sums of that.
        extender_points: What the extenders added; None if they scored no node.
        aftermath: The outcome of preemption.
        error: What broke the attempt off; empty if nothing did.
        reason: Whether it was that, or that no node fits.
        hold: The node to hold for the pod, "" to hold none any more, None to leave it.
    """

    pod: KnownPod
    nodes: int
    rejections: dict[str, PluginRejection] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=set)
    elsewhere: str = ""
    conflict: str = ""
    offered: int = 0
    accepted: int = 0
    feasible: int = 0
    nominated: bool = False
    names: Sequence[str] = ()
    in_tree: list[PluginScores] = field(default_factory=list)
    in_tree_points: Points = field(default_factory=lambda: np.zeros(0, np.int64))
    extender_points: Points | None = None
    aftermath: str = ""
    hold: str | None = None
    error: str = ""
    reason: Reason = "Unschedulable"

    def reject(self, node: str, rejection: PluginRejection) -> None:
        """Note that a node was rejected."""
        self.rejections[node] = rejection
        self.plugins.add(rejection.plugin)

    @property
    def points(self) -> Points:
        """All points of the nodes that were scored."""
        if self.extender_points is None:
            return self.in_tree_points
        return self.in_tree_points + self.extender_points

    @property
    def message(self) -> str:
        """Why no node fits: `0/3 nodes are available: 1 too hot, 2 Insufficient cpu.`."""
        if self.error:
            return self.error
        if self.conflict:
            sentence = f"0/{self.nodes} nodes are available: {self.conflict}."
        else:
            sentence = summary(self.nodes, self.rejections, self.elsewhere)
        return f"{sentence} {self.aftermath}" if self.aftermath else sentence


def summary(nodes: int, rejections: Mapping[str, PluginRejection], elsewhere: str = "") -> str:
    """Group equal reasons; `elsewhere` is that of nodes without a rejection of their own."""
    counts = Counter(reason for rejection in rejections.values() for reason in rejection.reasons)
    if elsewhere and nodes > len(rejections):
        counts[elsewhere] += nodes - len(rejections)
    grouped = sorted(f"{count} {reason}" for reason, count in counts.items())
    sentence = f"0/{nodes} nodes are available:"
    return f"{sentence} {', '.join(grouped)}." if grouped else sentence
