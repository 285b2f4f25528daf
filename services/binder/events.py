"""Reports failed binds to users as Kubernetes Events.

Written in the background: an Event that cannot be written is counted, and never fails a bind. A
failure that repeats becomes one Event with a count, as kube-scheduler's do.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import structlog

from moorage import Binding
from moorage.backoff import Backoff
from moorage_host.kube import KubeError, KubeStatusError, micro_time
from services.binder.binding.outcomes import BindError, Outcome, Reason
from services.binder.cluster import Cluster
from services.binder.metrics import BindMetrics

Mode = Literal["failures", "all", "none"]

LONGEST_NOTE = 1024
"""Bytes of a note that the API server accepts: no setting can change that."""
LONGEST_POD_NAME = 230
"""Characters of a pod's name in an Event's, which must stay within 253."""

WITHOUT_EVENT = {Reason.NOT_FOUND, Reason.OTHER_UID, Reason.STALE_EPOCH}
"""Failures after which there is no pod to report on, or that are none of the pod's."""

_log = structlog.get_logger()

Identity = tuple[str, ...]


@dataclass(slots=True)
class _Series:
    name: str
    count: int
    last: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    binding: Binding
    type: str
    reason: str
    note: str
    identity: Identity
    moment: datetime


class EventRecorder:
    """Queues Events and writes them one after the other.

    Args:
        cluster: Where to write them.
        mode: "failures" leaves "Scheduled" to kube-scheduler, which writes it for every bind.
        queue: Events that may wait; more are dropped. Also how many are kept for counting.
        series_window: Seconds within which the same failure counts as repeated.
        tries: How often an Event is tried to be written.
        instance: The name of this process.
        metrics: What counts.

    Attributes:
        unwanted: The end of binds that needs no Event: most binds end so.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        mode: Mode,
        queue: int,
        instance: str,
        metrics: BindMetrics,
        series_window: float = 360.0,
        tries: int = 3,
    ) -> None:
        self._cluster = cluster
        self._mode = mode
        self.unwanted = None if mode == "all" else Outcome.BOUND
        self._instance = instance
        self._metrics = metrics
        self._series_window = series_window
        self._tries = tries
        self._queue: asyncio.Queue[_Message] = asyncio.Queue(queue)
        self._recent: OrderedDict[Identity, _Series] = OrderedDict()

    def record(self, binding: Binding, result: Outcome | BindError) -> None:
        """Queue an Event about the end of a bind, if the mode wants one. Never waits."""
        message = self._message(binding, result)
        if message is None:
            return
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self._metrics.event("dropped")

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            message = await self._queue.get()
            try:
                await self._deliver(message)
            finally:
                self._queue.task_done()

    async def flush(self, timeout: float) -> None:
        """Wait for Events that are queued, for at most `timeout` seconds. `run` must be running."""
        try:
            async with asyncio.timeout(timeout):
                await self._queue.join()
        except TimeoutError:
            _log.warning("Events were not written before the end", events=self._queue.qsize())

    def _message(self, binding: Binding, result: Outcome | BindError) -> _Message | None:
        if isinstance(result, BindError):
            if self._mode == "none" or result.reason in WITHOUT_EVENT:
                return None
            kind, reason, cause = "Warning", "FailedBinding", result.reason.value
            note = f"Binding {_target(binding)} failed: {result}"
        else:
            if self._mode != "all" or result is not Outcome.BOUND:
                return None
            kind, reason, cause = "Normal", "Scheduled", ""
            why = f": {binding.decision.reason}" if binding.decision else ""
            note = f"Successfully assigned {_target(binding)}{why}"
        return _Message(
            binding=binding,
            type=kind,
            reason=reason,
            note=note.encode()[:LONGEST_NOTE].decode(errors="ignore"),
            identity=(binding.uid, binding.node, reason, cause),
            moment=datetime.now(UTC),
        )

    async def _deliver(self, message: _Message) -> None:
        try:
            await self._write_with_retries(message)
        except Exception as error:  # noqa: BLE001 - an Event must not end the process
            self._metrics.event("failed")
            _log.warning("An Event was not written", reason=message.reason, error=repr(error))
        else:
            self._metrics.event("written")

    async def _write_with_retries(self, message: _Message) -> None:
        backoff = Backoff(0.2, 2.0)
        for remaining in reversed(range(self._tries)):
            try:
                await self._write(message)
            except (KubeError, TimeoutError) as error:
                if not remaining or not _is_passing(error):
                    raise
                await asyncio.sleep(backoff.next(getattr(error, "retry_after", None)))
            else:
                return

    async def _write(self, message: _Message) -> None:
        series = self._recent.get(message.identity)
        if series and time.monotonic() - series.last > self._series_window:
            series = None
        if not series or not await self._repeat(message, series):
            await self._create(message)

    async def _repeat(self, message: _Message, series: _Series) -> bool:
        """Raise the count of an Event; return False if it is gone, as Events are after an hour."""
        change = {
            "series": {"count": series.count + 1, "lastObservedTime": micro_time(message.moment)}
        }
        try:
            await self._cluster.change_event(message.binding.namespace, series.name, change)
        except KubeStatusError as error:
            if error.status == 404:
                return False
            raise
        series.count += 1
        series.last = time.monotonic()
        return True

    async def _create(self, message: _Message) -> None:
        nanoseconds = int(message.moment.timestamp() * 1e6) * 1000
        name = f"{message.binding.name[:LONGEST_POD_NAME].rstrip('.-')}.{nanoseconds:x}"
        try:
            await self._cluster.create_event(message.binding.namespace, self._event(message, name))
        except KubeStatusError as error:
            if error.reason != "AlreadyExists":  # written by a try whose answer was lost
                raise
        self._keep(message.identity, _Series(name, 1, time.monotonic()))

    def _keep(self, identity: Identity, series: _Series) -> None:
        self._recent[identity] = series
        self._recent.move_to_end(identity)
        if len(self._recent) > self._queue.maxsize:
            self._recent.popitem(last=False)

    def _event(self, message: _Message, name: str) -> dict[str, Any]:
        binding = message.binding
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": binding.namespace},
            "eventTime": micro_time(message.moment),
            "reportingController": binding.profile or "moorage-binder",
            "reportingInstance": self._instance[:128],
            "action": "Binding",
            "reason": message.reason,
            "type": message.type,
            "note": message.note,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": binding.namespace,
                "name": binding.name,
                "uid": binding.uid,
            },
        }


def _target(binding: Binding) -> str:
    return f"{binding.namespace}/{binding.name} to {binding.node}"


def _is_passing(error: KubeError | TimeoutError) -> bool:
    if isinstance(error, KubeStatusError):
        return error.status == 429 or error.status >= 500
    return True
