"""Plugins of every kind, in every form, with what their methods get."""

import logging
from typing import Annotated, assert_type

import msgspec
import numpy as np
import numpy.typing as npt

from moorage import (
    DEVICE_CLASSES,
    SKIP,
    Allow,
    Amounts,
    Arguments,
    Binding,
    BindPlugin,
    Encoded,
    FilterPlugin,
    Meta,
    Node,
    Nodes,
    Normalization,
    ObjectKind,
    Objects,
    Permission,
    Pod,
    Preparation,
    Refusal,
    Rejection,
    Scope,
    ScorePlugin,
    Scores,
    Verdicts,
    Wait,
    normalize_by_maximum,
)
from moorage.models import NodeSelectorTerm, Taint

QUOTAS = ObjectKind("v1", "ResourceQuota")


class Device(msgspec.Struct):
    """A model of the author's own."""

    driver: str = ""


class ByNode(FilterPlugin):
    """A filter in plain Python."""

    depends_on = Scope.NODE

    class Args(Arguments):
        """Its arguments."""

        limit: Annotated[float, Meta(gt=0)] = 80.0
        zones: tuple[str, ...] = ()

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Read what a node and a pod have."""
        assert_type(self.args, ByNode.Args)
        assert_type(self.args.limit, float)
        assert_type(self.args.zones, tuple[str, ...])
        assert_type(node.name, str)
        assert_type(pod.name, str)
        assert_type(self.log, logging.Logger)
        if node.labels.get("zone", "") in self.args.zones:
            return None
        return Rejection("wrong zone", unresolvable=True)


class ByColumn(FilterPlugin):
    """A filter over all nodes at once."""

    reads = (QUOTAS, DEVICE_CLASSES)

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods."""
        return SKIP if not pod.labels else None

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Use columns."""
        assert_type(nodes.label("disk"), Encoded[str])
        assert_type(nodes.taints(), Encoded[tuple[Taint, ...]])
        assert_type(nodes.allocatable("cpu"), Amounts)
        assert_type(nodes.objects(DEVICE_CLASSES, Device), Objects[Device])
        assert_type(nodes[0], Node)
        assert_type(nodes[1:], Nodes)
        assert_type([node.name for node in nodes], list[str])
        matching = nodes.matching(NodeSelectorTerm())
        assert_type(matching, npt.NDArray[np.bool_])
        return nodes.verdicts().reject(~matching, "does not match")


class ScoreByNode(ScorePlugin):
    """A score in plain Python."""

    normalization = Normalization.REVERSED_MAXIMUM

    def score_node(self, pod: Pod, node: Node) -> float:
        """Count pods."""
        return sum(other.labels.get("app") == pod.labels.get("app") for other in node.pods)


class ScoreByColumn(ScorePlugin):
    """A score over all nodes at once, and its own normalization."""

    def score(self, pod: Pod, nodes: Nodes) -> npt.ArrayLike:
        """Return an array."""
        return nodes.allocatable("memory") - nodes.requested("memory")

    def normalize(self, scores: Scores) -> npt.ArrayLike:
        """Use the library's function."""
        return normalize_by_maximum(scores, reverse=True)


class Both(FilterPlugin, ScorePlugin):
    """One class of two kinds."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Let all pass."""
        return None

    def score_node(self, pod: Pod, node: Node) -> float:
        """Find all alike."""
        return 0


class Gang(BindPlugin):
    """Acts before and after a bind."""

    class Args(Arguments):
        """Its arguments."""

        size: int = 2

    def permit_key(self, binding: Binding) -> str:
        """Group pods."""
        assert_type(binding.pod, Pod)
        return binding.pod.labels.get("gang", "")

    async def permit(self, binding: Binding) -> Permission:
        """Give each of the answers."""
        if not binding.pod.labels:
            return Allow()
        return Wait(30.0, awaited="the gang") if self.args.size > 1 else Refusal("alone")

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        """Annotate."""
        binding.annotate("example.com/gang", "yes")
        return None

    async def post_bind(self, binding: Binding) -> None:
        """Log."""
        self.log.info("Bound")


class Base(FilterPlugin, abstract=True):
    """A base class of the author's own."""


class Derived(Base):
    """What it is for."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Let all pass."""
        return None


assert_type(Gang().args, Gang.Args)
assert_type(ByNode(ByNode.Args(limit=60)).args.limit, float)
