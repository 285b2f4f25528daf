"""Reports failed binds to users as Kubernetes Events.

Written in the background: an Event that cannot be written is counted, and never fails a bind. A
failure that repeats becomes one Event with a count, as kube-scheduler's do.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import structlog

from moorage import Binding
from moorage.backoff import Backoff
from moorage_host.kube import KubeError, KubeStatusError
from moorage_host.kube.events import make_event
from services.binder.binding.limits import BindLimits
from services.binder.binding.outcomes import BindError, Outcome, Reason
from services.binder.cluster import Cluster
from services.binder.metrics import BindMetrics

WITHOUT_EVENT = {Reason.NOT_FOUND, Reason.OTHER_UID, Reason.STALE_EPOCH}
"""Failures after which there is no pod to report on, or that are none of the pod's."""

_log = structlog.get_logger()

Identity = tuple[str, ...]
Event = dict[str, Any]


@dataclass(slots=True)
class _Series:
    name: str
    count: int
    last: float


class EventRecorder:
    """Queues Events and writes them one after the other.

    Attributes:
        unwanted: The end of binds that needs no Event: most binds end so.
    """

    def __init__(
        self, cluster: Cluster, limits: BindLimits, *, instance: str, metrics: BindMetrics
    ) -> None:
        """Write to *cluster* in the name of the process *instance*."""
        self.unwanted = None if limits.events == "all" else Outcome.BOUND
        self._cluster = cluster
        self._limits = limits
        self._instance = instance
        self._metrics = metrics
        self._queue: asyncio.Queue[tuple[Identity, Event]] = asyncio.Queue(limits.event_queue)
        self._recent: OrderedDict[Identity, _Series] = OrderedDict()

    def record(self, binding: Binding, result: Outcome | BindError, warning: str = "") -> None:
        """Queue an Event about the end of a bind, or a *warning*, if one is wanted. Never waits."""
        mode, target = self._limits.events, f"{binding.namespace}/{binding.name} to {binding.node}"
        if isinstance(result, BindError):
            if mode == "none" or result.reason in WITHOUT_EVENT:
                return
            kind, reason, cause = "Warning", "FailedBinding", result.reason.value
            note = f"Binding {target} failed: {result}"
        elif warning and mode != "none":
            kind, reason, cause = "Warning", "PlacedWithoutScores", ""
            note = f"Assigned {target}: {warning}"
        else:
            if mode != "all" or result is not Outcome.BOUND:
                return
            kind, reason, cause = "Normal", "Scheduled", ""
            why = f": {binding.decision.reason}" if binding.decision else ""
            note = f"Successfully assigned {target}{why}"
        identity = binding.uid, binding.node, reason, cause
        try:
            self._queue.put_nowait((identity, self._event(binding, kind, reason, note)))
        except asyncio.QueueFull:
            self._metrics.event("dropped")

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            identity, event = await self._queue.get()
            try:
                await self._write_with_retries(identity, event)
                self._metrics.event("written")
            except Exception as error:  # noqa: BLE001 - an Event must not end the process
                self._metrics.event("failed")
                reason = event["reason"]
                _log.warning("An Event was not written", reason=reason, error=repr(error))
            finally:
                self._queue.task_done()

    async def flush(self, timeout: float) -> None:
        """Wait for Events that are queued, for at most `timeout` seconds. `run` must be running."""
        try:
            async with asyncio.timeout(timeout):
                await self._queue.join()
        except TimeoutError:
            _log.warning("Events were not written before the end", events=self._queue.qsize())

    def _event(self, binding: Binding, kind: str, reason: str, note: str) -> Event:
        regarding = {"apiVersion": "v1", "kind": "Pod", "uid": binding.uid}
        return make_event(
            {**regarding, "namespace": binding.namespace, "name": binding.name},
            kind=kind,
            reason=reason,
            action="Binding",
            note=note,
            controller=binding.profile or "moorage-binder",
            instance=self._instance,
        )

    async def _write_with_retries(self, identity: Identity, event: Event) -> None:
        backoff = Backoff(0.2, 2.0)
        for remaining in reversed(range(self._limits.event_tries)):
            try:
                await self._write(identity, event)
            except (KubeError, TimeoutError) as error:
                if not remaining or not _is_passing(error):
                    raise
                await asyncio.sleep(backoff.next(getattr(error, "retry_after", None)))
            else:
                return

    async def _write(self, identity: Identity, event: Event) -> None:
        series, name, now = self._recent.get(identity), event["metadata"]["name"], time.monotonic()
        namespace = event["metadata"]["namespace"]
        if series is not None and now - series.last <= self._limits.event_series_window:
            change = {"count": series.count + 1, "lastObservedTime": event["eventTime"]}
            try:
                await self._cluster.change_event(namespace, series.name, {"series": change})
            except KubeStatusError as error:
                if error.status != 404:  # it may be gone, as Events are after an hour
                    raise
            else:
                series.count, series.last = series.count + 1, time.monotonic()
                return
        try:
            await self._cluster.create_event(namespace, event)
        except KubeStatusError as error:
            if error.reason != "AlreadyExists":  # written by a try whose answer was lost
                raise
        self._recent[identity] = _Series(name, 1, time.monotonic())
        self._recent.move_to_end(identity)
        if len(self._recent) > self._limits.event_queue:
            self._recent.popitem(last=False)


def _is_passing(error: KubeError | TimeoutError) -> bool:
    if isinstance(error, KubeStatusError):
        return error.status == 429 or error.status >= 500
    return True
