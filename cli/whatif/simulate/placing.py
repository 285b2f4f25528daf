"""Schedules pods in a copy of a cluster, one after another, as kube-scheduler with Moorage does."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec

from cli.shared.manifests import Object, is_finished, key_of
from cli.whatif.simulate.moorage import InProcess, why_not, why_pending
from cli.whatif.simulate.reading import ClusterObjects, placed_mistakes, readable, uid_of
from moorage.models import ObjectName
from moorage.snapshot.placements import placed_at
from moorage_host.kube_scheduler import KubeSchedulerConfiguration
from moorage_host.kube_scheduler.attempt import SchedulingAttempt
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.queue import ClusterEvent, QueuedPod
from moorage_host.kube_scheduler.scheduling import Scheduling

Done = Callable[[int], None]
"""Is called with the number of pods that were tried."""


class SimulatedPlacement(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"
):
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
    """Places pods in a copy of a cluster: what decisions lead to there, see `Effects`.

    Args:
        cache: The copy of the cluster; placed pods are counted there.
        configuration: The scheduler's configuration.
        moorage: The extender.
        others: The nodes that pods got by another policy.

    Attributes:
        evicted: For whom pods had to go, by victim.
    """

    def __init__(
        self,
        cache: SchedulerCache,
        configuration: KubeSchedulerConfiguration,
        moorage: InProcess,
        *,
        others: Mapping[str, str] | None = None,
    ) -> None:
        self._cache = cache
        self._moorage = moorage
        self._others = others or {}
        self._rng = random.Random()
        # Time stands still: pods that wait for a backoff go on as soon as nothing else is to do.
        self._scheduling = Scheduling(
            configuration, cache, moorage, self, rng=self._rng, clock=lambda: 0.0
        )
        self._placements: dict[str, SimulatedPlacement] = {}
        self.evicted: dict[str, str] = {}

    async def run(
        self, pods: Sequence[KnownPod], done: Done
    ) -> tuple[list[SimulatedPlacement], int]:
        """Try all pods, and those that fit nowhere again whenever a change may help them.

        Returns:
            What became of each, and how many scheduling cycles there were.
        """
        attempts, queue = 0, self._scheduling.queue
        for pod in pods:
            self._cache.set_pod(pod)
            if gates := pod.pod.spec.scheduling_gates:
                names = ", ".join(gate.name for gate in gates)
                self._pending(pod, f"it has scheduling gates: {names}")
            else:
                queue.put(pod)
        while queued := queue.pop():
            attempts += 1
            self._rng.seed(queued.pod.key)  # the same pod draws the same lot, whatever came before
            await self._scheduling.attempt(queued)
            done(len(self._placements))
        return [self._placements[pod.key] for pod in pods], attempts

    async def place(self, queued: QueuedPod, attempt: SchedulingAttempt, node: str) -> None:
        """Count the pod on its node."""
        pod = queued.pod
        other = self._others.get(pod.key, node)
        self._placements[pod.key] = SimulatedPlacement(
            pod=pod.key,
            node=node,
            claimants=tuple(self._moorage.claimants),
            why_not_there=why_not(attempt, self._moorage, node, other) if other != node else "",
        )
        self._cache.assume(_annotated(pod, self._moorage.annotations(node)), node)
        self._scheduling.queue.happened(ClusterEvent.POD_ADDED)

    async def evict(self, victim: KnownPod, preemptor: KnownPod, node: str) -> None:
        """Take a pod off its node at once."""
        self._cache.remove_pod(victim.uid)
        self.evicted[victim.key] = preemptor.key
        if victim.key in self._placements:
            self._pending(victim, f"it was evicted to make room for {preemptor.key}")
        self._scheduling.queue.happened(ClusterEvent.POD_DELETED)

    async def release(self, pod: KnownPod) -> None:
        """Do nothing: nobody reads the pod's status here."""

    async def failed(self, queued: QueuedPod, attempt: SchedulingAttempt) -> None:
        """Note why the pod is pending."""
        error = f"the attempt failed: {attempt.error}" if attempt.error else ""
        self._pending(queued.pod, error or why_pending(attempt, self._moorage))

    def _pending(self, pod: KnownPod, reason: str) -> None:
        self._placements[pod.key] = SimulatedPlacement(pod=pod.key, node="", reason=reason)


def _annotated(pod: KnownPod, annotations: Mapping[str, str]) -> KnownPod:
    if not annotations:
        return pod
    metadata = pod.document["metadata"]
    both = {**(metadata.get("annotations") or {}), **annotations}
    return KnownPod({**pod.document, "metadata": {**metadata, "annotations": both}})


def copy_of(cluster: ClusterObjects, moved: Collection[str]) -> SchedulerCache:
    """Return a copy without the pods that are *moved* (NAMESPACE/NAME).

    Raises:
        ConfigurationError: A node or a pod is malformed; the message names the place.
    """
    cache = SchedulerCache()
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
        if key_of(pod) in moved and not place:
            continue
        if key_of(pod) in moved:
            places["are taken off their nodes and placed again"] += 1
        elif is_finished(pod):
            continue
        elif not place:
            places["have no node, and are not among --pods"] += 1
        elif place not in names:
            places["are on nodes that are not there"] += 1
    yield from (f"pods of {cluster.place} that {why}: {count}" for why, count in places.items())


def _add_pod(cache: SchedulerCache, where: str, pod: Object) -> None:
    given = readable(pod, where)
    given["metadata"]["uid"] = uid_of(given)
    known = KnownPod(given)
    with placed_mistakes(f"{where}: pod {known.key}"):
        cache.set_pod(known)
        node = cache.nodes.get(known.pod.spec.node_name)
        if node is not None:  # it has long been there, which plugins that measure load look at
            since = placed_at(known.pod, cache.snapshot.placements.now())
            cache.snapshot.place_pod(node.row, known.pod, since=since)
