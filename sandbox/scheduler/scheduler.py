"""A kube-scheduler on a live API server: what it watches, and what its decisions write there.

One pod is decided about at a time; each is bound in the background.
"""

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog

from moorage_host.kube_scheduler import KubeSchedulerConfiguration
from moorage_host.kube_scheduler.attempt import SchedulingAttempt
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.extender import Extender
from moorage_host.kube_scheduler.extenders import Extenders
from moorage_host.kube_scheduler.preemption import PreemptionError
from moorage_host.kube_scheduler.queue import ClusterEvent, QueuedPod
from moorage_host.kube_scheduler.scheduling import Scheduling
from sandbox.client import Api, ApiError, Informer
from sandbox.scheduler.decisions import Decisions, keep
from sandbox.scheduler.outcomes import (
    STRATEGIC,
    NotBoundError,
    Recorder,
    bind,
    path_of,
    status_patch,
    with_condition,
)

_log = structlog.get_logger()

GRACE_SECONDS = 2.0
"""How long binding cycles under way may take when the scheduler stops."""


class StandInScheduler:
    """A stand-in for one kube-scheduler process.

    Args:
        configuration: A KubeSchedulerConfiguration.
        api_url: Where the API server listens.
        seed: Makes ties break the same way every time.
        decisions: Where decisions are kept; schedulers of one process may share it.
    """

    def __init__(
        self,
        configuration: KubeSchedulerConfiguration,
        api_url: str,
        *,
        seed: int | None = None,
        decisions: Decisions | None = None,
    ) -> None:
        ignorable_last = sorted(configuration.extenders, key=lambda config: config.ignorable)
        extenders = [Extender(config) for config in ignorable_last]
        api = Api(api_url)
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._bindings: set[asyncio.Task[None]] = set()
        self.cache = SchedulerCache()
        self.decisions = OrderedDict() if decisions is None else decisions
        self._scheduling = Scheduling(
            configuration,
            self.cache,
            Extenders(extenders, self.cache),
            self,
            rng=random.Random(seed),
            clock=time.monotonic,
        )
        self.queue = self._scheduling.queue
        self._nodes = Informer(api, "/api/v1/nodes", self._node_set, self._node_gone)
        self._pods = Informer(api, "/api/v1/pods", self._pod_set, self._pod_gone)
        self._api, self._extenders = api, extenders

    async def run(self) -> None:
        """Schedule until `stop`; binding cycles under way are given a moment to end."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._api)
            for extender in self._extenders:
                await stack.enter_async_context(extender)
            self._recorder = Recorder(self._api.client)
            async with asyncio.TaskGroup() as group:
                self._group = group
                following = [group.create_task(i.run()) for i in (self._nodes, self._pods)]
                writing = group.create_task(self._recorder.run())
                loop = group.create_task(self._loop())
                await self._stop.wait()
                loop.cancel()
                await self._finish()
                for task in (*following, writing, *self._bindings):
                    task.cancel()

    def stop(self) -> None:
        """Make `run` come to its end."""
        self._stop.set()

    def retry(self) -> int:
        """Try all pending pods again at once; return how many there are."""
        self._wake.set()
        return self.queue.retry_all()

    async def wait_until_synced(self) -> None:
        """Wait until nodes and pods have been listed."""
        await self._nodes.synced.wait()
        await self._pods.synced.wait()

    async def _finish(self) -> None:
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                if self._bindings:
                    await asyncio.wait(self._bindings)
        except TimeoutError:
            _log.warning("stopped with work under way", bindings=len(self._bindings))
        await self._recorder.flush(GRACE_SECONDS)

    async def _loop(self) -> None:
        await self.wait_until_synced()
        while True:
            self._wake.clear()
            if queued := self.queue.pop():
                await self._schedule(queued)
                await asyncio.sleep(0)  # without extenders nothing else lets others run
            else:
                await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self.queue.wait()):
                await self._wake.wait()
        except TimeoutError:
            return  # a backoff is over

    async def _schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod.pod
        if pod.metadata.deletion_timestamp:
            self._recorder.failed(pod, f"skip schedule deleting pod: {queued.pod.key}")
            self.queue.done(queued)
        else:
            await self._scheduling.attempt(queued)

    async def place(self, queued: QueuedPod, attempt: SchedulingAttempt, node: str) -> None:
        """Count a pod as on its node, and bind it in the background."""
        keep(self.decisions, attempt, node)
        known = self.cache.pods.get(queued.pod.uid)
        if known and known.pod.spec.node_name:
            return  # somebody else was faster
        self.cache.assume(queued.pod, node)
        task = self._group.create_task(self._bind(queued, node))
        self._bindings.add(task)
        task.add_done_callback(self._bindings.discard)

    async def _bind(self, queued: QueuedPod, node: str) -> None:
        try:
            await bind(self._api, self._extenders, queued.pod.pod, node)
        except NotBoundError as error:
            self.cache.forget(queued.pod.uid)
            self.queue.happened(ClusterEvent.POD_DELETED)
            await self._scheduling.break_off(queued, error, "SchedulerError")
            self._wake.set()
        else:
            self._recorder.scheduled(queued.pod.pod, node)

    async def evict(self, victim: KnownPod, preemptor: KnownPod, node: str) -> None:
        """Delete a pod that makes room.

        Raises:
            PreemptionError: The API server refused it.
        """
        conditions = victim.document.get("status", {}).get("conditions") or []
        scheduler = preemptor.pod.spec.scheduler_name
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        }
        try:
            await self._patch(victim, {"conditions": with_condition(conditions, condition)})
            await self._api.request("DELETE", path_of(victim.pod))
        except ApiError as error:
            if error.code != 404:  # gone already is what was wanted
                raise PreemptionError(str(error)) from error
        self._recorder.preempted(victim.pod, preemptor.pod, node)

    async def release(self, pod: KnownPod) -> None:
        """Write that no node is held for a pod any more.

        Raises:
            PreemptionError: The API server refused it.
        """
        try:
            await self._patch(pod, {"nominatedNodeName": None})
        except ApiError as error:
            raise PreemptionError(str(error)) from error

    async def failed(self, queued: QueuedPod, attempt: SchedulingAttempt) -> None:
        """Write why an attempt did not place its pod, as an Event and in the pod's status."""
        pod, message = queued.pod, attempt.message
        if attempt.error:
            _log.warning("attempt failed", pod=pod.key, reason=attempt.reason, error=message)
        else:
            keep(self.decisions, attempt, "")
        self._recorder.failed(pod.pod, message)
        if patch := status_patch(pod, attempt.reason, message, attempt.hold):
            try:
                await self._patch(pod, patch)
            except ApiError as error:
                _log.warning("status not written", pod=pod.key, error=str(error))

    async def _patch(self, pod: KnownPod, status: dict[str, object]) -> None:
        path, body = f"{path_of(pod.pod)}/status", {"status": status}
        self._pods.learn(await self._api.request("PATCH", path, body, STRATEGIC))

    def _pod_set(self, document: dict[str, Any]) -> None:
        """Take in a pod that is new or has changed."""
        pod = KnownPod(document)
        if pod.pod.is_terminal:
            self._pod_gone(document)
            return
        before = self.cache.pods.get(pod.uid)
        self.cache.set_pod(pod)
        if pod.pod.spec.node_name:
            was_bound = before is not None and before.pod.spec.node_name
            self.queue.discard(pod.uid)
            self._happened(ClusterEvent.POD_CHANGED if was_bound else ClusterEvent.POD_ADDED)
        elif self._wants_node(pod):
            self.queue.put(pod)
            self._wake.set()

    def _pod_gone(self, document: dict[str, Any]) -> None:
        """Take in that a pod is gone, or has ended."""
        uid = document["metadata"]["uid"]
        pod = self.cache.pods.get(uid)
        if pod is None:
            return
        took_room = pod.pod.spec.node_name or self.cache.is_assumed(uid)
        self.cache.remove_pod(uid)
        self.queue.discard(uid)
        if took_room:
            self._happened(ClusterEvent.POD_DELETED)

    def _node_set(self, document: dict[str, Any]) -> None:
        """Take in a node that is new or has changed; a mere heartbeat changes nothing."""
        before = self.cache.set_node(document)
        if self.cache.nodes[document["metadata"]["name"]].manifest != before:
            self._happened(ClusterEvent.NODE_CHANGED)

    def _node_gone(self, document: dict[str, Any]) -> None:
        """Take in that a node is gone."""
        self.cache.remove_node(document["metadata"]["name"])
        self._happened(ClusterEvent.NODE_DELETED)

    def _wants_node(self, pod: KnownPod) -> bool:
        spec = pod.pod.spec
        if spec.scheduler_name not in self._scheduling.profiles or spec.scheduling_gates:
            return False
        return not self.cache.is_assumed(pod.uid)

    def _happened(self, event: ClusterEvent) -> None:
        self.queue.happened(event)
        self._wake.set()


@asynccontextmanager
async def running(
    configuration: KubeSchedulerConfiguration, api_url: str, *, seed: int | None = None
) -> AsyncIterator[StandInScheduler]:
    """Run a scheduler in this process for as long as the block lasts; it is synced at its start."""
    scheduler = StandInScheduler(configuration, api_url, seed=seed)
    async with asyncio.TaskGroup() as group:
        group.create_task(scheduler.run())
        await scheduler.wait_until_synced()
        try:
            yield scheduler
        finally:
            scheduler.stop()
