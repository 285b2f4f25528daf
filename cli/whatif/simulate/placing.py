"""Schedules pods in a copy of a cluster, one after another, as kube-scheduler with Moorage does."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from cli.shared.manifests import Object, is_finished, key_of
from cli.whatif.simulate.moorage import InProcess, why_not, why_pending
from cli.whatif.simulate.reading import ClusterObjects, placed_mistakes, readable, uid_of
from moorage.errors import PluginFailedError
from moorage.models import ObjectName
from moorage.snapshot.placements import time_from_creation
from moorage_host.kube_scheduler import KubeSchedulerConfiguration
from sandbox.scheduler.cache import Cache, KnownPod
from sandbox.scheduler.cycle.attempt import Attempt, NoNodesError
from sandbox.scheduler.cycle.cycle import Cycle
from sandbox.scheduler.cycle.in_tree import InTreePlugins
from sandbox.scheduler.extenders.client import ExtenderError
from sandbox.scheduler.queue import ClusterEvent, QueuedPod, SchedulingQueue

Done = Callable[[int], None]
"""Is called with the number of pods that were tried."""


class Placement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What became of a pod.

    Attributes:
        pod: NAMESPACE/NAME.
        node: Its node; empty if it is pending.
        reason: Why it is pending.
        claimants: The plugins that had it claim its node.
        why_not_there: Why not on the node that it got by the other policy, if that is another.
    """

    pod: str
    node: str
    reason: str = ""
    claimants: tuple[str, ...] = ()
    why_not_there: str = ""


class Placing:
    """Places pods.

    Args:
        cache: The copy of the cluster; placed pods are counted there.
        configuration: The scheduler's configuration.
        moorage: The extender.
        others: The nodes that pods got by another policy.
    """

    def __init__(
        self,
        cache: Cache,
        configuration: KubeSchedulerConfiguration,
        moorage: InProcess,
        *,
        others: Mapping[str, str] | None = None,
    ) -> None:
        self._cache = cache
        self._moorage = moorage
        self._others = others or {}
        self._rng = random.Random()
        self._cycle = Cycle(configuration, cache, moorage, self._rng)
        self._profiles = {
            profile.scheduler_name: (
                profile,
                InTreePlugins(profile, configuration.ignored_resources),
            )
            for profile in configuration.profiles
        }
        self._placements: dict[str, Placement] = {}

    async def run(self, pods: Sequence[KnownPod], done: Done) -> tuple[list[Placement], int]:
        """Try all pods, and those that fit nowhere again whenever a placement may help them.

        Returns:
            What became of each, and how many scheduling cycles there were.
        """
        attempts = 0
        # Time stands still: pods that wait for a backoff go on as soon as nothing else is to do.
        queue = SchedulingQueue(initial_backoff=1.0, max_backoff=10.0, clock=lambda: 0.0)
        for pod in pods:
            self._cache.set_pod(pod)
            if gates := pod.pod.spec.scheduling_gates:
                names = ", ".join(gate.name for gate in gates)
                self._pending(pod, f"it has scheduling gates: {names}")
            else:
                queue.put(pod)
        while queued := queue.pop():
            attempts += 1
            await self._try(queued, queue)
            done(len(self._placements))
        return [self._placements[pod.key] for pod in pods], attempts

    async def _try(self, queued: QueuedPod, queue: SchedulingQueue) -> None:
        pod = queued.pod
        attempt = Attempt(pod=pod, nodes=len(self._cache.nodes))
        self._rng.seed(pod.key)  # the same pod draws the same lot, whatever came before it
        try:
            node = await self._cycle.choose(attempt, *self._profiles[pod.pod.spec.scheduler_name])
        except (ExtenderError, PluginFailedError, NoNodesError) as error:
            queue.done(queued)
            self._pending(pod, f"the attempt failed: {error}")
            return
        if node is None:
            self._pending(pod, why_pending(attempt, self._moorage))
            queue.retry(queued, frozenset(attempt.plugins))
            return
        queue.done(queued)
        self._placed(attempt, node)
        self._cache.assume(_annotated(pod, self._moorage.annotations(node)), node)
        queue.happened(ClusterEvent.POD_ADDED)

    def _placed(self, attempt: Attempt, node: str) -> None:
        pod = attempt.pod.key
        other = self._others.get(pod, node)
        self._placements[pod] = Placement(
            pod=pod,
            node=node,
            claimants=tuple(self._moorage.claimants),
            why_not_there=why_not(attempt, self._moorage, node, other) if other != node else "",
        )

    def _pending(self, pod: KnownPod, reason: str) -> None:
        self._placements[pod.key] = Placement(pod=pod.key, node="", reason=reason)


def _annotated(pod: KnownPod, annotations: Mapping[str, str]) -> KnownPod:
    if not annotations:
        return pod
    metadata = pod.document["metadata"]
    both = {**(metadata.get("annotations") or {}), **annotations}
    return KnownPod({**pod.document, "metadata": {**metadata, "annotations": both}})


def copy_of(cluster: ClusterObjects, moved: Collection[str]) -> Cache:
    """Return a copy without the pods that are *moved* (NAMESPACE/NAME).

    Raises:
        ConfigurationError: A node or a pod is malformed; the message names the place.
    """
    cache = Cache()
    for where, node in cluster.nodes:
        with placed_mistakes(f"{where}: node {node['metadata'].get('name')}"):
            cache.set_node(node)
    for where, pod in cluster.pods:
        if key_of(pod) not in moved and not is_finished(pod):
            _add_pod(cache, where, pod)
    objects = cache.snapshot.objects
    objects.open(cluster.further)
    for kind, items in cluster.further.items():
        for item in items:
            metadata = item["metadata"]
            name = ObjectName(kind, metadata.get("namespace", ""), metadata.get("name", ""))
            objects.put(name, msgspec.json.encode(item))
    return cache


def left_out(cluster: ClusterObjects, moved: Collection[str]) -> Iterator[str]:
    """Yield which pods of a cluster the copy does not count on any node, and why."""
    names = {node["metadata"].get("name") for _, node in cluster.nodes}
    places = Counter[str]()
    for _, pod in cluster.pods:
        place = (pod.get("spec") or {}).get("nodeName")
        if key_of(pod) in moved:
            places["are taken off their nodes and placed again"] += 1
        elif is_finished(pod):
            continue
        elif not place:
            places["have no node, and are not among --pods"] += 1
        elif place not in names:
            places["are on nodes that are not there"] += 1
    yield from (f"pods of {cluster.place} that {why}: {count}" for why, count in places.items())


def _add_pod(cache: Cache, where: str, pod: Object) -> None:
    given = readable(pod, where)
    given["metadata"]["uid"] = uid_of(given)
    known = KnownPod(given)
    with placed_mistakes(f"{where}: pod {known.key}"):
        cache.set_pod(known)
        node = cache.nodes.get(known.pod.spec.node_name)
        if node is not None:  # it has long been there, which plugins that measure load look at
            since = time_from_creation(known.pod, cache.snapshot.placements.now())
            cache.snapshot.place_pod(node.row, known.pod, since=since)
