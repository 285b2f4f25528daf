"""Schedules pods in a copy of a cluster, one after another, as kube-scheduler with Moorage does."""

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from cli.shared.manifests import Object, is_finished, key_of
from cli.whatif.simulate.moorage import InProcess, WhyNot, why_not, why_pending
from cli.whatif.simulate.reading import ClusterObjects, placed_mistakes, readable, uid_of
from moorage.errors import PluginFailedError
from moorage.models import ObjectName
from moorage.snapshot.placements import time_from_creation
from sandbox.scheduler.cache import Cache, KnownPod
from sandbox.scheduler.config import Configuration
from sandbox.scheduler.cycle.attempt import Attempt, NoNodesError
from sandbox.scheduler.cycle.cycle import Cycle
from sandbox.scheduler.cycle.in_tree import InTreePlugins
from sandbox.scheduler.extenders.client import ExtenderError
from sandbox.scheduler.queue import ClusterEvent, QueuedPod, SchedulingQueue

Done = Callable[[int], None]
"""Is called with the number of pods that were tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What became of a pod.

    Attributes:
        pod: NAMESPACE/NAME.
        node: Its node; empty if it is pending.
        reason: Why it is pending.
        feasible: How many nodes were left to choose from.
        claimants: The plugins that had it claim its node.
        elsewhere: Why it is not on the node that it got by the other policy, if that is another.
    """

    pod: str
    node: str = ""
    reason: str = ""
    feasible: int = 0
    claimants: tuple[str, ...] = ()
    elsewhere: WhyNot | None = None


@dataclass(slots=True, kw_only=True)
class Placed:
    """What became of all pods.

    Attributes:
        placements: By pod, in the order of the file.
        attempts: How many scheduling cycles there were.
        seconds: How long they took.
        failures: How often a plugin failed, by the problem.
    """

    placements: dict[str, Placement] = field(default_factory=dict)
    attempts: int = 0
    seconds: float = 0.0
    failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def pending(self) -> list[Placement]:
        """The pods without a node."""
        return [each for each in self.placements.values() if not each.node]


class Placing:
    """Places pods.

    Args:
        cache: The copy of the cluster; placed pods are counted there.
        configuration: The scheduler's configuration.
        moorage: The extender.
        seed: Breaks ties: the same pod draws the same lot, whatever came before it.
        others: The nodes that pods got by another policy.
    """

    def __init__(
        self,
        cache: Cache,
        configuration: Configuration,
        moorage: InProcess,
        *,
        seed: int,
        others: Mapping[str, str] | None = None,
    ) -> None:
        self._cache = cache
        self._moorage = moorage
        self._seed = seed
        self._others = others or {}
        self._rng = random.Random(seed)
        self._cycle = Cycle(configuration, cache, moorage, self._rng)
        self._profiles = {
            profile.scheduler_name: (
                profile,
                InTreePlugins(profile, configuration.ignored_resources),
            )
            for profile in configuration.profiles
        }
        self._placements: dict[str, Placement] = {}

    async def run(self, pods: Sequence[KnownPod], done: Done) -> Placed:
        """Try all pods, and those that fit nowhere again whenever a placement may help them."""
        start, attempts = time.perf_counter(), 0
        # Time stands still: pods that wait for a backoff go on as soon as nothing else is to do.
        queue = SchedulingQueue(initial_backoff=1.0, max_backoff=10.0, clock=lambda: 0.0)
        for pod in pods:
            self._cache.set_pod(pod)
            if gates := pod.pod.spec.scheduling_gates:
                names = ", ".join(gate.name for gate in gates)
                self._note(pod, Placement(pod=pod.key, reason=f"it has scheduling gates: {names}"))
            else:
                queue.put(pod)
        while queued := queue.pop():
            attempts += 1
            await self._try(queued, queue)
            done(len(self._placements))
        placements = {pod.key: self._placements[pod.key] for pod in pods}
        return Placed(
            placements=placements,
            attempts=attempts,
            seconds=time.perf_counter() - start,
            failures=self._moorage.failures,
        )

    async def _try(self, queued: QueuedPod, queue: SchedulingQueue) -> None:
        pod = queued.pod
        attempt = Attempt(pod=pod, nodes=len(self._cache.nodes))
        self._rng.seed(f"{self._seed}/{pod.key}")
        try:
            node = await self._cycle.choose(attempt, *self._profiles[pod.pod.spec.scheduler_name])
        except (ExtenderError, PluginFailedError, NoNodesError) as error:
            queue.done(queued)
            self._note(pod, Placement(pod=pod.key, reason=f"the attempt failed: {error}"))
            return
        self._note(pod, self._placement(attempt, node))
        if node is None:
            queue.retry(queued, frozenset(attempt.plugins))
            return
        queue.done(queued)
        self._cache.assume(pod, node)
        queue.happened(ClusterEvent.POD_ADDED)

    def _placement(self, attempt: Attempt, node: str | None) -> Placement:
        pod = attempt.pod.key
        if node is None:
            return Placement(pod=pod, reason=why_pending(attempt, self._moorage))
        other = self._others.get(pod, node)
        return Placement(
            pod=pod,
            node=node,
            feasible=attempt.feasible,
            claimants=tuple(self._moorage.claimants),
            elsewhere=why_not(attempt, self._moorage, node, other) if other != node else None,
        )

    def _note(self, pod: KnownPod, placement: Placement) -> None:
        self._placements[pod.key] = placement


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
