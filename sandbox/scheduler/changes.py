"""Turns what the watch reports into changes of the cache and of the queue."""

import asyncio
from typing import Any

from sandbox.scheduler.cluster.cache import Cache, KnownPod
from sandbox.scheduler.queue import ClusterEvent, SchedulingQueue


class Changes:
    """Where the informers report to.

    Args:
        cache: Gets every change.
        queue: Gets the pods that want a node from one of the schedulers.
        schedulers: The names that pods may ask for.
        wake: Set when there may be something to do.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        schedulers: frozenset[str],
        wake: asyncio.Event,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._schedulers = schedulers
        self._wake = wake

    def pod_set(self, document: dict[str, Any]) -> None:
        """Take in a pod that is new or has changed."""
        pod = KnownPod(document)
        if pod.pod.is_terminal:
            self.pod_gone(document)
            return
        before = self._cache.pods.get(pod.uid)
        self._cache.set_pod(pod)
        if pod.pod.spec.node_name:
            was_bound = before is not None and before.pod.spec.node_name
            self._queue.discard(pod.uid)
            self._happened(ClusterEvent.POD_CHANGED if was_bound else ClusterEvent.POD_ADDED)
        elif self._wants_node(pod):
            self._queue.put(pod)
            self._wake.set()

    def pod_gone(self, document: dict[str, Any]) -> None:
        """Take in that a pod is gone, or has ended."""
        uid = document["metadata"]["uid"]
        pod = self._cache.pods.get(uid)
        if pod is None:
            return
        took_room = pod.pod.spec.node_name or self._cache.is_assumed(uid)
        self._cache.remove_pod(uid)
        self._queue.discard(uid)
        if took_room:
            self._happened(ClusterEvent.POD_DELETED)

    def node_set(self, document: dict[str, Any]) -> None:
        """Take in a node that is new or has changed; a mere heartbeat changes nothing."""
        before = self._cache.set_node(document)
        if self._cache.nodes[document["metadata"]["name"]].manifest != before:
            self._happened(ClusterEvent.NODE_CHANGED)

    def node_gone(self, document: dict[str, Any]) -> None:
        """Take in that a node is gone."""
        self._cache.remove_node(document["metadata"]["name"])
        self._happened(ClusterEvent.NODE_DELETED)

    def _wants_node(self, pod: KnownPod) -> bool:
        spec = pod.pod.spec
        if spec.scheduler_name not in self._schedulers or spec.scheduling_gates:
            return False
        return not self._cache.is_assumed(pod.uid)

    def _happened(self, event: ClusterEvent) -> None:
        self._queue.happened(event)
        self._wake.set()
