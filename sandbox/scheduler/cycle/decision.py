"""What an attempt to schedule a pod found out, and the record of it that the process serves."""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from sandbox.scheduler.cluster.cache import KnownPod
from sandbox.scheduler.cycle.diagnosis import EXTENDER, Diagnosis
from sandbox.scheduler.cycle.in_tree import PluginScore, Points

KEPT = 4096  # decisions


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One attempt, as far as it has come.

    Attributes:
        pod: The pod.
        diagnosis: Why nodes do not fit.
        offered: How many nodes the extenders were asked about; 0 if they were not asked.
        accepted: How many of these they accepted.
        feasible: How many nodes passed all filters.
        nominated: Whether the pod got the node that preemption had held for it.
        names: The nodes that were scored; empty if there was no choice.
        in_tree: What each in-tree plugin gave them, 0 to a node that the cluster does not have.
        in_tree_points: The weighted sums of that.
        extender_points: What the extenders added; None if they scored no node.
    """

    pod: KnownPod
    diagnosis: Diagnosis
    offered: int = 0
    accepted: int = 0
    feasible: int = 0
    nominated: bool = False
    names: Sequence[str] = ()
    in_tree: list[PluginScore] = field(default_factory=list)
    in_tree_points: Points = field(default_factory=lambda: np.zeros(0, np.int64))
    extender_points: Points | None = None

    @property
    def points(self) -> Points:
        """All points of the nodes that were scored."""
        if self.extender_points is None:
            return self.in_tree_points
        return self.in_tree_points + self.extender_points


class _Record(msgspec.Struct, kw_only=True, rename="camel", gc=False):
    """A part of a decision; nothing in it refers back to it."""


class InTreeScore(_Record):
    """What an in-tree plugin gave a node, 0..100, and its weight."""

    plugin: str
    score: int
    weight: int


class NodePoints(_Record):
    """The points of a node.

    Attributes:
        in_tree: Those of the in-tree plugins.
        plugins: What they are made of.
        extenders: Those that the extenders added; None if they scored no node.
    """

    node: str
    in_tree: int
    plugins: list[InTreeScore]
    extenders: int | None


class Scores(_Record):
    """Why the chosen node was the best.

    Attributes:
        chosen: The chosen node.
        runner_up: The best of the others.
        preferred: The node with the most points of the extenders, if the chosen one has fewer.
        equals: How many other nodes have as many points in total.
    """

    chosen: NodePoints
    runner_up: NodePoints
    preferred: NodePoints | None
    equals: int


class PluginRejections(_Record):
    """How many nodes an in-tree plugin rejected, and how many for each reason."""

    plugin: str
    nodes: int
    reasons: dict[str, int]


class Decision(_Record):
    """The newest attempt on a pod, as `GET /decisions/NAMESPACE/POD` shows it.

    Attributes:
        node: The chosen node, empty if there is none.
        nodes: How many nodes the cluster has.
        rejected: What in-tree plugins rejected, the largest number first.
        offered: How many nodes the extenders were asked about; 0 if they were not asked.
        accepted: How many of these they accepted.
        feasible: How many nodes passed all filters.
        nominated: Whether it is the node that preemption had held for the pod.
        scores: Why the node was the best; None if there was no choice.
    """

    namespace: str
    pod: str
    uid: str
    node: str
    nodes: int
    rejected: list[PluginRejections]
    offered: int
    accepted: int
    feasible: int
    nominated: bool
    scores: Scores | None


class Decisions:
    """The newest decision about each pod; the oldest make room."""

    def __init__(self) -> None:
        self._decisions: OrderedDict[tuple[str, str], Decision] = OrderedDict()

    def get(self, namespace: str, pod: str) -> Decision | None:
        """Return the decision about a pod, if it is still kept."""
        return self._decisions.get((namespace, pod))

    def add(self, attempt: Attempt, node: str) -> None:
        """Record an attempt; *node* is empty if it found none."""
        pod, diagnosis = attempt.pod.pod, attempt.diagnosis
        decision = Decision(
            namespace=pod.namespace,
            pod=pod.name,
            uid=pod.uid,
            node=node,
            nodes=diagnosis.nodes,
            rejected=_rejected(diagnosis, is_placed=bool(node)),
            offered=attempt.offered,
            accepted=attempt.accepted,
            feasible=attempt.feasible,
            nominated=attempt.nominated,
            scores=_scores(attempt, node) if node and attempt.names else None,
        )
        key = (pod.namespace, pod.name)
        self._decisions[key] = decision
        self._decisions.move_to_end(key)
        if len(self._decisions) > KEPT:
            self._decisions.popitem(last=False)


def _rejected(diagnosis: Diagnosis, *, is_placed: bool) -> list[PluginRejections]:
    nodes: Counter[str] = Counter()
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in diagnosis.rejections.values():
        if each.plugin != EXTENDER:
            nodes[each.plugin] += 1
            reasons[each.plugin].update(each.reasons)
    left = diagnosis.nodes - len(diagnosis.rejections)
    # Without a node for the pod, no node outside of those that it names was looked at.
    if (reason := diagnosis.conflict or diagnosis.elsewhere) and left and not is_placed:
        nodes["NodeAffinity"] += left
        reasons["NodeAffinity"][reason] += left
    return [
        PluginRejections(plugin=plugin, nodes=count, reasons=dict(reasons[plugin]))
        for plugin, count in nodes.most_common()
    ]


def _scores(attempt: Attempt, node: str) -> Scores:
    chosen, extended = attempt.names.index(node), attempt.extender_points
    points = attempt.points
    others = points.copy()
    others[chosen] = np.iinfo(np.int64).min
    preferred = None
    if extended is not None and extended[chosen] < extended.max():
        preferred = _points_of(attempt, int(extended.argmax()))
    return Scores(
        chosen=_points_of(attempt, chosen),
        runner_up=_points_of(attempt, int(others.argmax())),
        preferred=preferred,
        equals=int(np.count_nonzero(points == points[chosen])) - 1,
    )


def _points_of(attempt: Attempt, position: int) -> NodePoints:
    extended = attempt.extender_points
    return NodePoints(
        node=attempt.names[position],
        in_tree=int(attempt.in_tree_points[position]),
        plugins=[
            InTreeScore(plugin=each.plugin, score=int(each.scores[position]), weight=each.weight)
            for each in attempt.in_tree
        ],
        extenders=None if extended is None else int(extended[position]),
    )
