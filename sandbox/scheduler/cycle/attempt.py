"""What an attempt to schedule a pod found out, the sentence that users read about it, and records.

The record is what the process serves.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from sandbox.scheduler.cache import KnownPod

EXTENDER = "Extender"
"""What kube-scheduler writes for the plugin if an extender rejected a node."""

Points: TypeAlias = npt.NDArray[np.int64]
"""One whole number for each node; sums wrap around as in Go."""


class Rejection(NamedTuple):
    """Why a node was rejected. Removing pods does not cure an unresolvable reason."""

    plugin: str
    reasons: tuple[str, ...]
    unresolvable: bool = False


class PluginScore(NamedTuple):
    """What an in-tree plugin gives the nodes, 0..100, and its weight."""

    plugin: str
    weight: int
    scores: Points


class NoNodesError(Exception):
    """The cluster is empty."""

    def __str__(self) -> str:
        return "no nodes available to schedule pods"


@dataclass(slots=True, kw_only=True)
class Attempt:
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
        hold: The node to hold for the pod, "" to hold none any more, None to leave it.
    """

    pod: KnownPod
    nodes: int
    rejections: dict[str, Rejection] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=set)
    elsewhere: str = ""
    conflict: str = ""
    offered: int = 0
    accepted: int = 0
    feasible: int = 0
    nominated: bool = False
    names: Sequence[str] = ()
    in_tree: list[PluginScore] = field(default_factory=list)
    in_tree_points: Points = field(default_factory=lambda: np.zeros(0, np.int64))
    extender_points: Points | None = None
    aftermath: str = ""
    hold: str | None = None

    def reject(self, node: str, rejection: Rejection) -> None:
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
        if self.conflict:
            sentence = f"0/{self.nodes} nodes are available: {self.conflict}."
        else:
            sentence = summary(self.nodes, self.rejections, self.elsewhere)
        return f"{sentence} {self.aftermath}" if self.aftermath else sentence


def summary(nodes: int, rejections: Mapping[str, Rejection], elsewhere: str = "") -> str:
    """Group equal reasons; `elsewhere` is that of nodes without a rejection of their own."""
    counts = Counter(reason for rejection in rejections.values() for reason in rejection.reasons)
    if elsewhere and nodes > len(rejections):
        counts[elsewhere] += nodes - len(rejections)
    grouped = sorted(f"{count} {reason}" for reason, count in counts.items())
    sentence = f"0/{nodes} nodes are available:"
    return f"{sentence} {', '.join(grouped)}." if grouped else sentence


KEPT = 4096  # decisions

Decisions: TypeAlias = OrderedDict[tuple[str, str], dict[str, Any]]
"""The newest attempt on each pod, as `GET /decisions/NAMESPACE/POD` shows it."""


def keep(decisions: Decisions, attempt: Attempt, node: str) -> None:
    """Record an attempt, the oldest make room; *node* is empty if it found none."""
    pod = attempt.pod.pod
    key = (pod.namespace, pod.name)
    decisions[key] = {
        "namespace": pod.namespace,
        "pod": pod.name,
        "uid": pod.uid,
        "node": node,
        "nodes": attempt.nodes,
        "rejected": _rejected(attempt, is_placed=bool(node)),
        "offered": attempt.offered,
        "accepted": attempt.accepted,
        "feasible": attempt.feasible,
        "nominated": attempt.nominated,
        "scores": _scores(attempt, node) if node and attempt.names else None,
    }
    decisions.move_to_end(key)
    if len(decisions) > KEPT:
        decisions.popitem(last=False)


def _rejected(attempt: Attempt, *, is_placed: bool) -> list[dict[str, Any]]:
    """Return how many nodes each in-tree plugin rejected, and how many for each reason."""
    nodes: Counter[str] = Counter()
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in attempt.rejections.values():
        if each.plugin != EXTENDER:
            nodes[each.plugin] += 1
            reasons[each.plugin].update(each.reasons)
    left = attempt.nodes - len(attempt.rejections)
    # Without a node for the pod, no node outside of those that it names was looked at.
    if (reason := attempt.conflict or attempt.elsewhere) and left and not is_placed:
        nodes["NodeAffinity"] += left
        reasons["NodeAffinity"][reason] += left
    return [
        {"plugin": plugin, "nodes": count, "reasons": dict(reasons[plugin])}
        for plugin, count in nodes.most_common()
    ]


def _scores(attempt: Attempt, node: str) -> dict[str, Any]:
    """Return why the chosen node was the best.

    Beside it stand the best of the others, the node with the most points of the extenders if that
    is another, and how many other nodes have as many points in total.
    """
    chosen, extended, points = attempt.names.index(node), attempt.extender_points, attempt.points
    others = points.copy()
    others[chosen] = np.iinfo(np.int64).min
    preferred = None
    if extended is not None and extended[chosen] < extended.max():
        preferred = _points_of(attempt, int(extended.argmax()))
    return {
        "chosen": _points_of(attempt, chosen),
        "runnerUp": _points_of(attempt, int(others.argmax())),
        "preferred": preferred,
        "equals": int(np.count_nonzero(points == points[chosen])) - 1,
    }


def _points_of(attempt: Attempt, position: int) -> dict[str, Any]:
    extended = attempt.extender_points
    return {
        "node": attempt.names[position],
        "inTree": int(attempt.in_tree_points[position]),
        "plugins": [
            {"plugin": each.plugin, "score": int(each.scores[position]), "weight": each.weight}
            for each in attempt.in_tree
        ],
        "extenders": None if extended is None else int(extended[position]),
    }
