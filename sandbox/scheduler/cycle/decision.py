"""What an attempt to schedule a pod found out, and the record of it that the process serves."""

from collections import Counter, OrderedDict
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
        in_tree: What each in-tree plugin gave them.
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
    in_tree: Sequence[PluginScore] = ()
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
    """What an in-tree plugin gave the chosen node, 0..100, and its weight."""

    plugin: str
    score: int
    weight: int


class Scores(_Record):
    """Why the chosen node was the best.

    Attributes:
        in_tree: The points of the in-tree plugins.
        plugins: What they are made of.
        extenders: The points that the extenders added; None if they scored no node.
        in_tree_best: The best node by in-tree points alone; the chosen one if it has as many.
        extenders_best: The same by the extenders' points alone; empty if there are none.
        equals: How many other nodes have as many points in total.
    """

    in_tree: int
    plugins: list[InTreeScore]
    extenders: int | None
    in_tree_best: str
    extenders_best: str
    equals: int


class Decision(_Record):
    """The newest attempt on a pod, as `GET /decisions/NAMESPACE/POD` shows it.

    Attributes:
        node: The chosen node, empty if there is none.
        nodes: How many nodes the cluster has.
        rejected: How many nodes each in-tree plugin rejected.
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
    rejected: dict[str, int]
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
        rejected = Counter(each.plugin for each in diagnosis.rejections.values())
        del rejected[EXTENDER]
        if (diagnosis.elsewhere or diagnosis.conflict) and not node:
            rejected["NodeAffinity"] += diagnosis.nodes - len(diagnosis.rejections)
        decision = Decision(
            namespace=pod.namespace,
            pod=pod.name,
            uid=pod.uid,
            node=node,
            nodes=diagnosis.nodes,
            rejected=dict(rejected),
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


def _scores(attempt: Attempt, node: str) -> Scores:
    chosen, extended = attempt.names.index(node), attempt.extender_points
    points = attempt.points
    return Scores(
        in_tree=int(attempt.in_tree_points[chosen]),
        plugins=[
            InTreeScore(plugin=each.plugin, score=int(each.scores[chosen]), weight=each.weight)
            for each in attempt.in_tree
        ],
        extenders=None if extended is None else int(extended[chosen]),
        in_tree_best=attempt.names[_best(attempt.in_tree_points, chosen)],
        extenders_best="" if extended is None else attempt.names[_best(extended, chosen)],
        equals=int(np.count_nonzero(points == points[chosen])) - 1,
    )


def _best(points: Points, chosen: int) -> int:
    return chosen if points[chosen] == points.max() else int(points.argmax())
