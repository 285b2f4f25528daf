"""One scheduling cycle: which nodes fit a pod, and which of them is best.

In-tree filters on a sample of the nodes, then the extenders' filters one after another; in-tree
scores, then those of all extenders at once. The cluster does not change, and neither does the
cache: in-tree plugins never wait for anything, so what a trial changes is put back before another
task runs.
"""

import random
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import structlog

from moorage import Nodes
from moorage.execution import FilterRun, PluginRejection
from moorage_host.kube_scheduler import KubeSchedulerConfiguration, KubeSchedulerProfile
from moorage_host.kube_scheduler.attempt import EXTENDER, NoNodesError, Points, SchedulingAttempt
from moorage_host.kube_scheduler.cache import KnownPod, NodeInfo, SchedulerCache
from moorage_host.kube_scheduler.extender import ExtenderError
from moorage_host.kube_scheduler.extenders import Extending, Offered
from moorage_host.kube_scheduler.in_tree import InTreePlugins, named_nodes

_log = structlog.get_logger()

CONFLICT = "pod affinity terms conflict"
ELSEWHERE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
_MIN_SAMPLE = 100
_MIN_PERCENTAGE = 5


def sample_size(nodes: int, percentage: int) -> int:
    """Return how many feasible nodes are enough; a percentage of 0 means that it adapts."""
    if nodes < _MIN_SAMPLE:
        return nodes
    percentage = percentage or max(_MIN_PERCENTAGE, 50 - nodes // 125)
    return max(_MIN_SAMPLE, nodes * percentage // 100)


class SchedulingCycle:
    """Chooses nodes for pods.

    Args:
        configuration: The scheduler's configuration.
        cache: The state of the cluster.
        extenders: The extenders' filters and scores.
        rng: Breaks ties.
    """

    def __init__(
        self,
        configuration: KubeSchedulerConfiguration,
        cache: SchedulerCache,
        extenders: Extending,
        rng: random.Random,
    ) -> None:
        self._percentage = configuration.percentage_of_nodes_to_score
        self._cache = cache
        self._extenders = extenders
        self._rng = rng
        self._start = 0

    async def choose(
        self, attempt: SchedulingAttempt, profile: KubeSchedulerProfile, plugins: InTreePlugins
    ) -> str | None:
        """Return the best node's name, None if no node fits; note in *attempt* how it came about.

        Raises:
            NoNodesError: The cluster is empty.
            ExtenderError: An extender failed that is not ignorable.
            PluginFailedError: An in-tree plugin cannot evaluate the pod.
        """
        if not self._cache.nodes:
            raise NoNodesError
        names = named_nodes(attempt.pod.pod) if plugins.narrows else None
        if names is not None and not names:
            attempt.conflict = CONFLICT
            attempt.plugins.add("NodeAffinity")
            return None
        feasible = await self._on_nominated(attempt, plugins)
        attempt.nominated = bool(feasible)
        if not feasible:
            feasible = await self._anywhere(attempt, profile, plugins, names)
        attempt.feasible = len(feasible)
        if len(feasible) < 2:
            return next(iter(feasible), None)
        return await self._best(attempt, plugins, feasible)

    async def _on_nominated(self, attempt: SchedulingAttempt, plugins: InTreePlugins) -> Offered:
        node = self._cache.nodes.get(self._cache.nomination(attempt.pod))
        if node is None:
            return {}
        if rejection := await rejection_of(self._cache, attempt.pod, plugins, node):
            attempt.reject(node.name, rejection)
            return {}
        try:
            return await self._extenders.filter(attempt, {node.name: node.wire})
        except ExtenderError as error:
            _log.warning("nominated node not evaluated", node=node.name, error=str(error))
            return {}

    async def _anywhere(
        self,
        attempt: SchedulingAttempt,
        profile: KubeSchedulerProfile,
        plugins: InTreePlugins,
        named: frozenset[str] | None,
    ) -> Offered:
        nodes = self._in_turn(named)
        if named is not None:
            attempt.elsewhere = ELSEWHERE
            attempt.plugins.add("NodeAffinity")
        percentage = profile.percentage_of_nodes_to_score
        enough = sample_size(len(nodes), self._percentage if percentage is None else percentage)
        verdicts = await plugins.filter(attempt.pod.pod, nodes)
        verdicts = await self._mind_nominees(attempt.pod, plugins, nodes, verdicts)
        found = (verdicts.codes == 0).nonzero()[0][:enough]
        evaluated = int(found[-1]) + 1 if len(found) == enough > 0 else len(nodes)
        names = self._cache.names
        for position in verdicts.codes[:evaluated].nonzero()[0].tolist():
            if rejection := verdicts.rejection(position):
                attempt.reject(names[nodes.rows[position]], rejection)
        processed = len(found) + len(attempt.rejections)
        self._start = (self._start + processed) % len(self._cache.nodes)
        sample = map(names.__getitem__, nodes.rows[found].tolist())
        if self._extenders.names_only:
            offered: Offered = dict.fromkeys(sample, b"")
        else:
            offered = {name: self._cache.nodes[name].wire for name in sample}
        feasible = await self._extenders.filter(attempt, offered)
        if len(feasible) != len(offered):
            attempt.plugins.add(EXTENDER)
        return feasible

    def _in_turn(self, named: frozenset[str] | None) -> Nodes:
        if named is None:
            return self._cache.in_order(self._start % len(self._cache.nodes))
        rows = self._cache.rows_of(sorted(named))
        return self._cache.snapshot.nodes(rows[rows >= 0])

    async def _mind_nominees(
        self, pod: KnownPod, plugins: InTreePlugins, nodes: Nodes, verdicts: FilterRun
    ) -> FilterRun:
        """Evaluate the nodes on which room is held as if it were taken, too."""
        codes, reasons = verdicts.codes, list(verdicts.reasons)
        for name in self._cache.held_nodes:
            node, nominees = self._cache.nodes.get(name), self._cache.nominees(name, pod)
            if node is None or not nominees:
                continue
            with self._cache.trial(node, nominees):
                fuller = await plugins.filter(pod.pod, self._cache.one(node))
            if rejection := fuller.rejection(0):
                reasons.append(rejection)
                codes[nodes.rows == node.row] = len(reasons)
        return msgspec.structs.replace(verdicts, codes=codes, reasons=reasons)

    async def _best(
        self, attempt: SchedulingAttempt, plugins: InTreePlugins, feasible: Offered
    ) -> str:
        attempt.names = names = list(feasible)
        # An extender may answer with nodes that nobody knows: in-tree plugins give them nothing.
        rows = self._cache.rows_of(names)
        known = self._cache.snapshot.nodes(rows[rows >= 0])
        attempt.in_tree_points = np.zeros(len(names), np.int64)
        for each in await plugins.score(attempt.pod.pod, known):
            raw, normalized = (_of_all(rows, part) for part in (each.raw, each.normalized))
            attempt.in_tree.append(msgspec.structs.replace(each, raw=raw, normalized=normalized))
            attempt.in_tree_points += each.weight * normalized
        extended = await self._extenders.scores(attempt.pod, feasible)
        if not extended:
            return names[int(attempt.in_tree_points.argmax())]
        added = [extended.get(name, 0) for name in names]
        attempt.extender_points = np.array(added, np.int64)
        return self._luckiest(names, attempt.points, extended)

    def _luckiest(self, names: list[str], points: Points, extended: Mapping[str, int]) -> str:
        """Return one of the best nodes: at random of those that an extender has scored."""
        best = [names[i] for i in np.flatnonzero(points == points.max()).tolist()]
        scored = [name for name in best if name in extended]
        return self._rng.choice(scored or best[:1])


def _of_all(rows: npt.NDArray[np.int64], known: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the scores of all nodes, 0 of those that the cluster does not have."""
    scores = np.zeros(len(rows), known.dtype)
    scores[rows >= 0] = known
    return scores


async def rejection_of(
    cache: SchedulerCache, pod: KnownPod, plugins: InTreePlugins, node: NodeInfo
) -> PluginRejection | None:
    """Evaluate a node with the pods for which room is held on it, and then without them."""
    if nominees := cache.nominees(node.name, pod):
        with cache.trial(node, nominees):
            verdicts = await plugins.filter(pod.pod, cache.one(node))
        if rejection := verdicts.rejection(0):
            return rejection
    return (await plugins.filter(pod.pod, cache.one(node))).rejection(0)
