"""Writes events and the PodScheduled condition as kube-scheduler does.

Events go out in the background and may be lost; equal ones are counted in one event's series, as
client-go's recorder does.
"""

import asyncio
import socket
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any, Literal

import structlog

from moorage.models import Pod
from sandbox.scheduler.cluster.api import Api, ApiError
from sandbox.scheduler.cluster.cache import KnownPod

_log = structlog.get_logger()

NOTE_LIMIT = 1024  # characters of an event's note
_QUEUED_EVENTS = 1000
_REMEMBERED_EVENTS = 4096


class Recorder:
    """Writes the outcomes of attempts to the API server."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_QUEUED_EVENTS)
        self._written: OrderedDict[tuple[str, ...], dict[str, Any]] = OrderedDict()

    async def run(self) -> None:
        """Send events until cancelled."""
        while True:
            event = await self._queue.get()
            try:
                await self._send(event)
            except ApiError as error:
                _log.warning("event lost", reason=event["reason"], error=str(error))
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait until everything recorded so far has been sent."""
        await self._queue.join()

    def scheduled(self, pod: Pod, node: str) -> None:
        """Record that a pod was bound."""
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self._record(pod, "Normal", "Scheduled", "Binding", note)

    def failed(self, pod: Pod, message: str) -> None:
        """Record that an attempt failed."""
        self._record(pod, "Warning", "FailedScheduling", "Scheduling", truncated(message))

    def preempted(self, victim: Pod, preemptor: Pod, node: str) -> None:
        """Record that a pod was evicted."""
        note = f"Preempted by pod {preemptor.uid} on node {node}"
        name = preemptor.spec.scheduler_name
        self._record(victim, "Normal", "Preempted", "Preempting", note, reporter=name)

    def _record(
        self, pod: Pod, kind: str, reason: str, action: str, note: str, reporter: str = ""
    ) -> None:
        now = datetime.now(UTC)
        reporter = reporter or pod.spec.scheduler_name
        event = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": f"{pod.name}.{time.time_ns():x}", "namespace": pod.namespace},
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": reporter,
            "reportingInstance": f"{reporter}-{socket.gethostname()}",
            "action": action,
            "reason": reason,
            "regarding": {
                "kind": "Pod",
                "apiVersion": "v1",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
            },
            "note": note,
            "type": kind,
        }
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            _log.warning("event lost", reason=reason, error="too many events are waiting")

    async def _send(self, event: dict[str, Any]) -> None:
        key = (event["regarding"]["uid"], event["reason"], event["note"])
        earlier = self._written.get(key)
        if earlier is None:
            await self._api.create_event(event)
            self._keep(key, event)
            return
        series = earlier.get("series")
        count = series["count"] + 1 if series else 2
        earlier["series"] = {"count": count, "lastObservedTime": event["eventTime"]}
        if not series:  # client-go writes later counts only every few minutes
            await self._api.patch_event(earlier, {"series": earlier["series"]})

    def _keep(self, key: tuple[str, ...], event: dict[str, Any]) -> None:
        self._written[key] = event
        while len(self._written) > _REMEMBERED_EVENTS:
            self._written.popitem(last=False)


def status_patch(
    pod: KnownPod,
    reason: Literal["Unschedulable", "SchedulerError"],
    message: str,
    nominated: str | None,
) -> dict[str, Any] | None:
    """Return what to change in the status after a failed attempt, None if nothing."""
    status = pod.document.get("status", {})
    patch: dict[str, Any] = {}
    if nominated is not None and nominated != status.get("nominatedNodeName", ""):
        patch["nominatedNodeName"] = nominated or None
    conditions = status.get("conditions") or []
    wanted = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "reason": reason,
        "message": message,
    }
    before: dict[str, Any] = next((c for c in conditions if c["type"] == "PodScheduled"), {})
    if any(before.get(key) != value for key, value in wanted.items()):
        patch["conditions"] = with_condition(conditions, wanted)
    return patch or None


def with_condition(
    conditions: list[dict[str, Any]], wanted: dict[str, Any]
) -> list[dict[str, Any]]:
    """Put a condition in place of the one of its type, keeping the time of the last transition."""
    before: dict[str, Any] = next((c for c in conditions if c["type"] == wanted["type"]), {})
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    same = before.get("status") == wanted["status"]
    since = before.get("lastTransitionTime") if same else now
    others = [c for c in conditions if c["type"] != wanted["type"]]
    return [*others, {**wanted, "lastTransitionTime": since or now}]


def truncated(message: str) -> str:
    """Cut a message to what fits an event."""
    return message if len(message) <= NOTE_LIMIT else message[: NOTE_LIMIT - 4] + " ..."
