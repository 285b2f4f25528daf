"""Follows the API server and keeps the cluster state."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from gateway.cluster.kinds import AdditionalKinds
from gateway.cluster.metrics import ClusterCollector, WatchMetrics
from gateway.cluster.pods import PODS, SeenPod, Waiting, decode_seen_pod
from gateway.cluster.reflector import Reflector
from gateway.cluster.rows import NodeEntry, Rows
from gateway.cluster.state import ClusterState
from gateway.cluster.wire import Resource
from gateway.settings import GatewaySettings
from moorage.models import NodeManifest, decode_node
from moorage.models.decoding import decode_passing_node, share_changed_node, share_node
from moorage_host.kube import KubeClient

EXPIRY_INTERVAL = 1.0

LONGEST_INTERRUPTION = 2.0
"""Seconds for which nodes or pods may not be followed until the gateway is not ready."""

NODES = Resource(path="/api/v1/nodes", key="name", decode=decode_node)
"""All nodes."""


def decode_seen_node(raw: bytes | msgspec.Raw, known: Mapping[str, NodeEntry]) -> NodeManifest:
    """Read a node; what has not changed it shares with the one that is *known* by its name.

    Raises:
        msgspec.DecodeError: It is no node.
    """
    node = decode_passing_node(raw)
    before = known.get(node.metadata.name)
    return share_node(node) if before is None else share_changed_node(node, before.manifest)


class Cluster:
    """The cluster state, with the watches that feed it.

    Attributes:
        state: What is known.
        kinds: The watches of the additional kinds that plugins read.
        max_age: Seconds of silence of the API server after which the state is stale.
        waiting: What each pod without a node shows about why it has none, by uid.
    """

    def __init__(
        self,
        client: KubeClient,
        state: ClusterState,
        registry: CollectorRegistry,
        *,
        max_object_bytes: int,
        max_age: float,
    ) -> None:
        """Feed *state*; objects of additional kinds of up to *max_object_bytes*.

        After *max_age* seconds of silence it is stale.
        """
        metrics = WatchMetrics(registry)
        self.state = state
        self.waiting: dict[str, Waiting] = {}
        self.max_age = max_age
        self.kinds = AdditionalKinds(client, state.objects, metrics, limit=max_object_bytes)
        self._nodes: Reflector[NodeManifest] = Reflector(
            client,
            replace(NODES, decode=partial(decode_seen_node, known=state.rows.entries)),
            put=state.set_node,
            drop=state.drop_node,
            received=partial(metrics.events, "nodes"),
            restarted=lambda reason: metrics.restarts("nodes", reason).inc(),
        )
        self._pods: Reflector[SeenPod] = Reflector(
            client,
            replace(PODS, decode=partial(decode_seen_pod, known=state.pods.get)),
            put=self._take_pod,
            drop=self._drop_pod,
            received=partial(metrics.events, "pods"),
            restarted=lambda reason: metrics.restarts("pods", reason).inc(),
        )
        self._reflectors: dict[str, Reflector[Any]] = {"nodes": self._nodes, "pods": self._pods}

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the API server for as long as the block lasts."""
        async with asyncio.TaskGroup() as group:
            followers = (each.run() for each in self._reflectors.values())
            tasks = [group.create_task(work) for work in (*followers, self._expire())]
            self.kinds.start(group)
            yield
            self.kinds.stop()
            for task in tasks:
                task.cancel()

    @property
    def generation(self) -> int:
        """The generation of the state."""
        return self.state.generation

    @property
    def rows(self) -> Rows:
        """The nodes by row."""
        return self.state.rows

    def synced(self) -> bool:
        """Whether nodes and pods have been read."""
        return self._nodes.synced.is_set() and self._pods.synced.is_set()

    async def until_synced(self) -> None:
        """Wait until nodes and pods have been read."""
        for reflector in self._reflectors.values():
            await reflector.synced.wait()

    async def until_pods_as_of(self, time: float) -> None:
        """Wait until the state has all binds before *time* on the monotonic clock; list for it."""
        await self._pods.until(time)

    def ages(self) -> Mapping[str, float]:
        """Return for each resource for how many seconds the API server has been silent."""
        own = {name: reflector.age() for name, reflector in self._reflectors.items()}
        return {**own, **self.kinds.ages()}

    def age(self) -> float:
        """Return the longer of the ages of nodes and pods; infinite before both have been read."""
        if not (self._nodes.synced.is_set() and self._pods.synced.is_set()):
            return math.inf
        return time.monotonic() - min(self._nodes.last_heard, self._pods.last_heard)

    def is_stale(self) -> bool:
        """Whether nodes or pods are too old to decide by."""
        return self.age() > self.max_age

    def problem(self) -> str | None:
        """Return why nodes and pods are not as they should be, if they are not."""
        if not self.synced():
            waiting = (each for each in self._reflectors.values() if not each.synced.is_set())
            causes = [each.problem for each in waiting if each.problem]
            return ": ".join(["nodes and pods have not been read yet", *causes[:1]])
        for name, reflector in self._reflectors.items():
            if (seconds := reflector.interruption()) > LONGEST_INTERRUPTION:
                return f"{name} have not been followed for {seconds:.0f} s: {reflector.problem}"
        return f"the API server is silent for {self.age():.0f} s" if self.is_stale() else None

    def note(self) -> str | None:
        """Return what keeps nodes and pods from being followed, or was sent that is not true."""
        notes = (each.note() for each in self._reflectors.values())
        return "; ".join(filter(None, notes)) or None

    def objects_note(self) -> str | None:
        """Return the same of the additional kinds that plugins read."""
        return "; ".join(self.kinds.notes()) or None

    def objects_problem(self) -> str | None:
        """Return what is wrong with the additional kinds that plugins read, if anything is."""
        return "; ".join(self.kinds.problems(self.max_age)) or None

    def _take_pod(self, seen: SeenPod) -> None:
        uid, failure = seen.pod.metadata.uid, ""
        if seen.waiting is not None:
            self.waiting[uid], failure = seen.waiting, seen.waiting.failure
        else:
            self.waiting.pop(uid, None)
        self.state.set_pod(seen.pod, failure, seen.size)

    def _drop_pod(self, uid: str) -> None:
        self.waiting.pop(uid, None)
        self.state.drop_pod(uid)

    async def _expire(self) -> None:
        heard = -math.inf
        while True:
            await asyncio.sleep(EXPIRY_INTERVAL)
            # As of the last round: what the watch had to show by then has been taken over.
            self.state.expire(heard)
            if not self._pods.interruption():
                heard = self._pods.last_heard


def make_cluster(
    client: KubeClient, settings: GatewaySettings, registry: CollectorRegistry
) -> Cluster:
    """Return the cluster state, empty yet, with its watches."""
    state = ClusterState(
        claim_ttl=settings.claim_ttl,
        kept_changes=settings.kept_changes,
    )
    cluster = Cluster(
        client,
        state,
        registry,
        max_object_bytes=settings.max_object_bytes,
        max_age=settings.max_cache_age,
    )
    registry.register(ClusterCollector(lambda: state.counts, cluster.ages, state.heavy.largest))
    return cluster
