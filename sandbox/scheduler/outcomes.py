"""What an attempt writes to the API server: a binding, events, or a condition.

Events go out in the background and may be lost; equal ones are counted in one event's series, as
client-go's recorder does.
"""

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import structlog

from moorage.models import Pod
from sandbox.client import Api, ApiError
from sandbox.scheduler.cache import KnownPod
from sandbox.scheduler.extenders.client import Extender, ExtenderError, bind_answer, bind_body

_log = structlog.get_logger()


class BindError(Exception):
    """A pod was not bound, as far as the scheduler knows."""


async def bind(api: Api, extenders: Sequence[Extender], pod: Pod, node: str) -> None:
    """Bind a pod: through the extender that offers it, or as the default binder does.

    Args:
        api: The API server, for pods that no extender binds.
        extenders: In the order in which they are asked; an answer is final unless it is ignorable.
        pod: The pod.
        node: The node that was chosen for it.

    Raises:
        BindError: The extender or the API server refused, or did not answer.
    """
    for extender in extenders:
        if not extender.config.bind_verb or not extender.is_interested(pod):
            continue
        try:
            return await _ask(extender, pod, node)
        except ExtenderError as error:
            if not extender.config.ignorable:
                raise BindError(str(error)) from error
            _log.info("extender skipped", extender=extender.name, error=str(error))
    binding = {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "target": {"kind": "Node", "name": node},
    }
    try:
        await api.request("POST", f"{path_of(pod)}/binding", binding)
    except ApiError as error:
        raise BindError(f'running Bind plugin "DefaultBinder": {error}') from error


async def _ask(extender: Extender, pod: Pod, node: str) -> None:
    answer = await extender.call(extender.config.bind_verb, bind_body(pod, node))
    if refusal := bind_answer(answer):
        raise ExtenderError(refusal)


STRATEGIC = "application/strategic-merge-patch+json"
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
        path = f"/apis/events.k8s.io/v1/namespaces/{event['metadata']['namespace']}/events"
        if earlier is None:
            await self._api.request("POST", path, event)
            self._keep(key, event)
            return
        series = earlier.get("series")
        count = series["count"] + 1 if series else 2
        earlier["series"] = {"count": count, "lastObservedTime": event["eventTime"]}
        if not series:  # client-go writes later counts only every few minutes
            change = {"series": earlier["series"]}
            path = f"{path}/{earlier['metadata']['name']}"
            await self._api.request("PATCH", path, change, STRATEGIC)

    def _keep(self, key: tuple[str, ...], event: dict[str, Any]) -> None:
        self._written[key] = event
        while len(self._written) > _REMEMBERED_EVENTS:
            self._written.popitem(last=False)


Reason = Literal["Unschedulable", "SchedulerError"]


def status_patch(
    pod: KnownPod,
    reason: Reason,
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


def path_of(pod: Pod) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
