"""Leaves out of a cluster what the plugin's wrong answer does not depend on."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from cli.whatif.replay.to_test.expectation import Expectation
from cli.whatif.replay.to_test.situation import Objects, Situation
from moorage.errors import MoorageError
from moorage.models import NodeManifest, ObjectKind, Pod
from moorage.plugin.filter import FilterPlugin
from moorage.plugin.score import ScorePlugin
from moorage.testing import run_filter, run_score
from moorage_host.policy.arguments import check_arguments

T = TypeVar("T")

LONGEST = 60.0
"""Seconds after which nothing more is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """A cluster that may lack nodes, pods and objects."""

    nodes: Sequence[NodeManifest]
    pods: Sequence[Pod]
    objects: Objects


class Reducer:
    """Runs the plugin on smaller and smaller clusters."""

    def __init__(self, situation: Situation, expectation: Expectation) -> None:
        """Begin with the whole cluster."""
        self._situation = situation
        self._expectation = expectation
        self._end = time.monotonic() + LONGEST
        reads = expectation.plugin.kind.reads
        self._whole = Reduced(
            nodes=list(situation.nodes.values()),
            pods=situation.pods,
            objects={kind: situation.objects.get(kind, ()) for kind in reads},
        )

    def reduce(self) -> tuple[Reduced, bool]:
        """Return a small cluster, and whether the plugin answers wrongly on it."""
        expectation = self._expectation
        start = self._only({expectation.node, expectation.rival})
        if self._is_wrong(start):
            return self._smaller(start), True
        if self._is_wrong(self._whole):
            return self._smaller(self._fewer_nodes(self._whole)), True
        return start, False

    def _only(self, names: set[str]) -> Reduced:
        return _on([node for node in self._whole.nodes if node.name in names], self._whole)

    def _fewer_nodes(self, cluster: Reduced) -> Reduced:
        kept = {self._expectation.node, self._expectation.rival}
        needed = [node for node in cluster.nodes if node.name in kept]
        others = [node for node in cluster.nodes if node.name not in kept]
        left = self._fewest(others, lambda some: _on([*needed, *some], cluster))
        return _on([*needed, *left], cluster)

    def _smaller(self, cluster: Reduced) -> Reduced:
        pods = self._fewest(cluster.pods, lambda some: replace(cluster, pods=some))
        cluster = replace(cluster, pods=pods)
        for kind in cluster.objects:
            cluster = self._fewer_objects(cluster, kind)
        return cluster

    def _fewer_objects(self, cluster: Reduced, kind: ObjectKind) -> Reduced:
        def with_objects(some: Sequence[object]) -> Reduced:
            return replace(cluster, objects={**cluster.objects, kind: some})  # type: ignore[dict-item]

        return with_objects(self._fewest(cluster.objects[kind], with_objects))

    def _fewest(self, things: Sequence[T], cluster: Callable[[Sequence[T]], Reduced]) -> list[T]:
        """Leave out ever smaller parts for as long as the answer stays wrong."""
        left, part = list(things), max(len(things), 1)
        while left and part and time.monotonic() < self._end:
            start = 0
            while start < len(left) and time.monotonic() < self._end:
                fewer = [*left[:start], *left[start + part :]]
                if self._is_wrong(cluster(fewer)):
                    left = fewer
                else:
                    start += part
            part //= 2
        return left

    def _is_wrong(self, cluster: Reduced) -> bool:
        """Whether the plugin gives the recorded answer, or one that is as wrong."""
        expectation = self._expectation
        try:
            plugin = expectation.plugin.kind(
                check_arguments(expectation.arguments, expectation.plugin.kind.Args, "args")
            )
            if isinstance(plugin, FilterPlugin):
                verdicts = run_filter(
                    plugin,
                    self._situation.pod,
                    *cluster.nodes,
                    pods=cluster.pods,
                    objects=cluster.objects,
                )
                verdict = verdicts[expectation.node]
                if expectation.wish == "rejected":
                    return verdict is None
                return verdict is not None and expectation.recorded in ("", verdict.reason)
            assert isinstance(plugin, ScorePlugin)  # noqa: S101 - there is no third kind here
            scores = run_score(
                plugin,
                self._situation.pod,
                *cluster.nodes,
                pods=cluster.pods,
                objects=cluster.objects,
            )
            return scores.get(expectation.node, 0.0) < scores.get(expectation.rival, 0.0)
        except (MoorageError, ValueError):
            return False


def _on(nodes: Sequence[NodeManifest], cluster: Reduced) -> Reduced:
    names = {node.name for node in nodes}
    pods = [pod for pod in cluster.pods if pod.spec.node_name in names]
    return replace(cluster, nodes=nodes, pods=pods)
