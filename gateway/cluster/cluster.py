"""Follows nodes and pods at the API server and keeps the cluster state."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter

from gateway.cluster.kinds import node_reflector, pod_reflector
from gateway.cluster.reflector import Reflector
from gateway.cluster.sinks import NodeSink, PodSink
from gateway.cluster.state import ClusterState
from gateway.cluster.watching import Restart
from moorage.kube import KubeClient

EXPIRY_INTERVAL = 1.0


class Cluster:
    """The cluster state, with the watches that feed it."""

    def __init__(
        self, client: KubeClient, state: ClusterState, registry: CollectorRegistry
    ) -> None:
        families = WatchFamilies(registry)
        self.state = state
        self._reflectors: dict[str, Reflector[Any]] = {
            "nodes": node_reflector(client, NodeSink(state), WatchMetrics(families, "nodes")),
            "pods": pod_reflector(client, PodSink(state), WatchMetrics(families, "pods")),
        }

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the API server for as long as the block lasts."""
        async with asyncio.TaskGroup() as group:
            followers = (each.run() for each in self._reflectors.values())
            tasks = [group.create_task(work) for work in (*followers, self._expire())]
            yield
            for task in tasks:
                task.cancel()

    def synced(self) -> bool:
        """Whether nodes and pods have been read."""
        return all(reflector.synced.is_set() for reflector in self._reflectors.values())

    def ages(self) -> Mapping[str, float]:
        """Return for each resource for how many seconds the API server has been silent."""
        return {name: reflector.age() for name, reflector in self._reflectors.items()}

    def age(self) -> float:
        """Return the longest of the ages."""
        return max(self.ages().values())

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRY_INTERVAL)
            self.state.expire()


class WatchFamilies:
    """The metric families of watches."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.events = Counter(
            "moorage_watch_events",
            "Events from the API server.",
            ["resource", "type"],
            registry=registry,
        )
        self.restarts = Counter(
            "moorage_watch_restarts",
            "Watches that ended, by reason.",
            ["resource", "reason"],
            registry=registry,
        )


class WatchMetrics:
    """Counts what one reflector does."""

    def __init__(self, families: WatchFamilies, resource: str) -> None:
        self._families = families
        self._resource = resource

    def received(self, event: str) -> None:
        """Count an event."""
        self._families.events.labels(self._resource, event).inc()

    def restarted(self, reason: Restart) -> None:
        """Count a watch that ended."""
        self._families.restarts.labels(self._resource, reason).inc()
