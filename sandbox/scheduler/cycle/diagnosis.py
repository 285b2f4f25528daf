"""Why nodes do not fit a pod, and the sentence that users read about it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

EXTENDER = "Extender"
"""What kube-scheduler writes for the plugin if an extender rejected a node."""


class Rejection(NamedTuple):
    """Why a node was rejected. Removing pods does not cure an unresolvable reason."""

    plugin: str
    reasons: tuple[str, ...]
    unresolvable: bool = False


@dataclass(slots=True)
class Diagnosis:
    """What an attempt found out about nodes that do not fit.

    Attributes:
        nodes: How many nodes the cluster has.
        rejections: Why nodes were rejected, by name.
        plugins: Which plugins rejected some; decides which cluster events allow another attempt.
        elsewhere: The reason of nodes that were not evaluated, if there is one.
        conflict: Why no node was evaluated at all; empty if nodes were.
        aftermath: The outcome of preemption.
        nominated: The node to hold for the pod, "" to hold none any more, None to leave it.
    """

    nodes: int
    rejections: dict[str, Rejection] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=set)
    elsewhere: str = ""
    conflict: str = ""
    aftermath: str = ""
    nominated: str | None = None

    def reject(self, node: str, rejection: Rejection) -> None:
        """Note that a node was rejected."""
        self.rejections[node] = rejection
        self.plugins.add(rejection.plugin)

    def __str__(self) -> str:
        if self.conflict:
            sentence = f"0/{self.nodes} nodes are available: {self.conflict}."
        else:
            sentence = summary(self.nodes, self.rejections, self.elsewhere)
        return f"{sentence} {self.aftermath}" if self.aftermath else sentence


class NoNodesError(Exception):
    """The cluster is empty."""

    def __str__(self) -> str:
        return "no nodes available to schedule pods"


def summary(nodes: int, rejections: Mapping[str, Rejection], elsewhere: str = "") -> str:
    """Group equal reasons: `0/3 nodes are available: 1 too hot, 2 Insufficient cpu.`.

    `elsewhere` is the reason of nodes without a rejection of their own.
    """
    counts = Counter(reason for rejection in rejections.values() for reason in rejection.reasons)
    if elsewhere and nodes > len(rejections):
        counts[elsewhere] += nodes - len(rejections)
    grouped = sorted(f"{count} {reason}" for reason, count in counts.items())
    sentence = f"0/{nodes} nodes are available:"
    return f"{sentence} {', '.join(grouped)}." if grouped else sentence
