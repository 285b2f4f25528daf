"""The scheduler: one serial loop over the queue, and a binding cycle in the background per pod."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog

from moorage.errors import PluginFailedError
from sandbox.client import Api, ApiError
from sandbox.scheduler.cluster.cache import Cache, KnownPod
from sandbox.scheduler.cluster.informer import Informer
from sandbox.scheduler.config import Configuration
from sandbox.scheduler.cycle.cycle import Cycle
from sandbox.scheduler.cycle.decision import Attempt, Decisions
from sandbox.scheduler.cycle.diagnosis import Diagnosis, NoNodesError
from sandbox.scheduler.cycle.extending import Extenders
from sandbox.scheduler.cycle.in_tree import InTreePlugins
from sandbox.scheduler.cycle.preemption import NAME, Preemption, PreemptionError
from sandbox.scheduler.extenders.client import Extender, ExtenderError
from sandbox.scheduler.outcomes import BindError, Failures, Recorder, bind
from sandbox.scheduler.queue import ClusterEvent, QueuedPod, SchedulingQueue

_log = structlog.get_logger()

GRACE_SECONDS = 2.0
"""How long binding cycles under way may take when the scheduler stops."""


class Scheduler:
    """A stand-in for one kube-scheduler process.

    Args:
        configuration: A KubeSchedulerConfiguration.
        api_url: Where the API server listens.
        seed: Makes ties break the same way every time.
        clock: Returns the time for the queue, in seconds.
        decisions: Where decisions are kept; schedulers of one process may share it.
    """

    def __init__(
        self,
        configuration: Configuration,
        api_url: str,
        *,
        seed: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        decisions: Decisions | None = None,
    ) -> None:
        rng = random.Random(seed)
        ignorable_last = sorted(configuration.extenders, key=lambda config: config.ignorable)
        extenders = [Extender(config) for config in ignorable_last]
        self._profiles = {
            profile.scheduler_name: (
                profile,
                InTreePlugins(profile, configuration.ignored_resources),
            )
            for profile in configuration.profiles
        }
        api = Api(api_url)
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._bindings: set[asyncio.Task[None]] = set()
        self.cache = Cache()
        self.decisions = decisions or Decisions()
        self.queue = SchedulingQueue(
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
            clock=clock,
        )
        nodes = Informer(api, "/api/v1/nodes", self._node_set, self._node_gone)
        pods = Informer(api, "/api/v1/pods", self._pod_set, self._pod_gone)
        self._informers = (nodes, pods)
        self._recorder = Recorder(api)
        self._cycle = Cycle(configuration, self.cache, Extenders(extenders), rng)
        self._preemption = Preemption(self.cache, extenders, rng)
        self._api, self._extenders = api, extenders
        self._failures = Failures(api, self.cache, self.queue, self._recorder, pods)

    async def run(self) -> None:
        """Schedule until `stop`; binding cycles under way are given a moment to end."""
        async with AsyncExitStack() as stack:
            connections: tuple[Api | Extender, ...] = (self._api, *self._extenders)
            for connection in connections:
                await stack.enter_async_context(connection)
            async with asyncio.TaskGroup() as group:
                following = [group.create_task(i.run()) for i in self._informers]
                writing = group.create_task(self._recorder.run())
                loop = group.create_task(self._loop(group))
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
        for informer in self._informers:
            await informer.synced.wait()

    async def _finish(self) -> None:
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                if self._bindings:
                    await asyncio.wait(self._bindings)
                await self._recorder.flush()
        except TimeoutError:
            _log.warning("stopped with work under way", bindings=len(self._bindings))

    async def _loop(self, group: asyncio.TaskGroup) -> None:
        await self.wait_until_synced()
        while True:
            self._wake.clear()
            if queued := self.queue.pop():
                await self._schedule(queued, group)
                await asyncio.sleep(0)  # without extenders nothing else lets others run
            else:
                await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self.queue.wait()):
                await self._wake.wait()
        except TimeoutError:
            return  # a backoff is over

    async def _schedule(self, queued: QueuedPod, group: asyncio.TaskGroup) -> None:
        pod = queued.pod.pod
        if pod.metadata.deletion_timestamp:
            self._recorder.failed(pod, f"skip schedule deleting pod: {queued.pod.key}")
            self.queue.done(queued)
            return
        attempt = Attempt(pod=queued.pod, diagnosis=Diagnosis(len(self.cache.nodes)))
        try:
            node = await self._cycle.choose(attempt, *self._profiles[pod.spec.scheduler_name])
        except NoNodesError as error:
            await self._failures.broken(queued, error, "Unschedulable")
        except (ExtenderError, PluginFailedError) as error:
            await self._failures.broken(queued, error, "SchedulerError")
        else:
            self.decisions.add(attempt, node or "")
            if node:
                self._assume(queued, node, group)
            else:
                await self._preempt(queued, attempt.diagnosis)
                await self._failures.rejected(queued, attempt.diagnosis)

    def _assume(self, queued: QueuedPod, node: str, group: asyncio.TaskGroup) -> None:
        self.queue.done(queued)
        known = self.cache.pods.get(queued.pod.uid)
        if known and known.pod.spec.node_name:
            return  # somebody else was faster
        self.cache.assume(queued.pod, node)
        task = group.create_task(self._bind(queued, node))
        self._bindings.add(task)
        task.add_done_callback(self._bindings.discard)

    async def _bind(self, queued: QueuedPod, node: str) -> None:
        try:
            await bind(self._api, self._extenders, queued.pod.pod, node)
        except BindError as error:
            self.cache.forget(queued.pod.uid)
            self.queue.happened(ClusterEvent.POD_DELETED)
            await self._failures.broken(queued, error, "SchedulerError")
            self._wake.set()
        else:
            self._recorder.scheduled(queued.pod.pod, node)

    async def _preempt(self, queued: QueuedPod, diagnosis: Diagnosis) -> None:
        profile, plugins = self._profiles[queued.pod.pod.spec.scheduler_name]
        if NAME not in profile.post_filters:
            diagnosis.nominated = ""
            return
        try:
            plan = await self._preemption.plan(queued.pod, plugins, diagnosis)
            await self._failures.evict(queued.pod, plan)
        except (PluginFailedError, ApiError, PreemptionError) as error:
            diagnosis.aftermath = f"preemption: {error}"
            if isinstance(error, PreemptionError) and error.hopeless:
                diagnosis.nominated = ""
        else:
            diagnosis.aftermath = f"preemption: {plan}"
            diagnosis.nominated = plan.node

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
        if spec.scheduler_name not in self._profiles or spec.scheduling_gates:
            return False
        return not self.cache.is_assumed(pod.uid)

    def _happened(self, event: ClusterEvent) -> None:
        self.queue.happened(event)
        self._wake.set()


@asynccontextmanager
async def running(
    configuration: Configuration, api_url: str, *, seed: int | None = None
) -> AsyncIterator[Scheduler]:
    """Run a scheduler in this process for as long as the block lasts; it is synced at its start."""
    scheduler = Scheduler(configuration, api_url, seed=seed)
    async with asyncio.TaskGroup() as group:
        group.create_task(scheduler.run())
        await scheduler.wait_until_synced()
        try:
            yield scheduler
        finally:
            scheduler.stop()
