"""What happens after an attempt failed: the pod is queued again, with a condition and an event."""

from typing import Literal

import structlog

from sandbox.scheduler.cluster.api import Api, ApiError
from sandbox.scheduler.cluster.cache import Cache, KnownPod
from sandbox.scheduler.cluster.informer import Informer
from sandbox.scheduler.cluster.recorder import Recorder, status_patch, with_condition
from sandbox.scheduler.cycle.diagnosis import Diagnosis
from sandbox.scheduler.cycle.preemption import Plan
from sandbox.scheduler.queue import QueuedPod, SchedulingQueue

_log = structlog.get_logger()

Reason = Literal["Unschedulable", "SchedulerError"]


class Failures:
    """Ends attempts that did not place their pod."""

    def __init__(
        self, api: Api, cache: Cache, queue: SchedulingQueue, recorder: Recorder, pods: Informer
    ) -> None:
        self._api = api
        self._cache = cache
        self._queue = queue
        self._recorder = recorder
        self._pods = pods

    async def rejected(self, queued: QueuedPod, diagnosis: Diagnosis) -> None:
        """End an attempt in which no node fitted."""
        plugins = frozenset(diagnosis.plugins)
        await self._end(queued, "Unschedulable", str(diagnosis), plugins, diagnosis.nominated)

    async def broken(self, queued: QueuedPod, error: Exception, reason: Reason) -> None:
        """End an attempt that an error broke off."""
        _log.warning("attempt failed", pod=queued.pod.key, reason=reason, error=str(error))
        await self._end(queued, reason, str(error), frozenset(), "")

    async def evict(self, preemptor: KnownPod, plan: Plan) -> None:
        """Delete a plan's victims and release the room held for less important pods.

        Raises:
            ApiError: The API server refused one of these.
        """
        for victim in plan.victims:
            if not victim.pod.metadata.deletion_timestamp:
                await self._delete(victim, preemptor, plan.node)
        for other in self._cache.held(plan.node):
            if other.pod.spec.priority < preemptor.pod.spec.priority:
                self._cache.nominate(other, "")
                await self._patch(other, {"nominatedNodeName": None})

    async def _end(
        self,
        queued: QueuedPod,
        reason: Reason,
        message: str,
        plugins: frozenset[str],
        nominated: str | None,
    ) -> None:
        pod = self._cache.pods.get(queued.pod.uid)
        if pod is None or pod.pod.spec.node_name:
            # Deleted, or bound after all although the answer got lost.
            self._queue.done(queued)
        else:
            queued.pod = pod
            self._queue.retry(queued, plugins)
            if nominated is not None:
                self._cache.nominate(pod, nominated)
        self._recorder.failed(queued.pod.pod, message)
        if patch := status_patch(queued.pod, reason, message, nominated):
            await self._try_patch(queued.pod, patch)

    async def _try_patch(self, pod: KnownPod, status: dict[str, object]) -> None:
        try:
            await self._patch(pod, status)
        except ApiError as error:
            _log.warning("status not written", pod=pod.key, error=str(error))

    async def _patch(self, pod: KnownPod, status: dict[str, object]) -> None:
        self._pods.learn(await self._api.patch_status(pod.pod, status))

    async def _delete(self, victim: KnownPod, preemptor: KnownPod, node: str) -> None:
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
            await self._api.delete_pod(victim.pod)
        except ApiError as error:
            if error.code != 404:  # gone already is what was wanted
                raise
        self._recorder.preempted(victim.pod, preemptor.pod, node)
