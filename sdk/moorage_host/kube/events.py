"""Events of the group events.k8s.io, written in the background.

An Event that cannot be written is counted, and never fails what it reports. A report that repeats
becomes one Event with a count, as kube-scheduler's do.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import structlog

from moorage.backoff import Backoff
from moorage.units.printable import printable
from moorage_host.kube.client import KubeClient
from moorage_host.kube.response import KubeError, KubeStatusError, micro_time

LONGEST_NOTE = 1024
"""Bytes of a note that the API server accepts: no setting can change that."""

LONGEST_NAME = 230
"""Characters of what an Event is about in its own name, which must stay within 253."""

SERIES_SECONDS = 360.0
"""Within this time a report that repeats is counted in one Event; kube-scheduler's number."""

MERGE_PATCH = "application/merge-patch+json"

_log = structlog.get_logger()


@dataclass(slots=True)
class _Series:
    name: str
    count: int
    last: float


class EventWriter:
    """Queues Events and writes them one after the other."""

    def __init__(
        self,
        client: KubeClient,
        instance: str,
        *,
        waiting: int = 1000,
        timeout: float = 10.0,
        tries: int = 3,
        first_pause: float = 0.2,
        count: Callable[[Literal["written", "dropped", "failed"]], object] = lambda _: None,
    ) -> None:
        """Write through *client* in the name of the process *instance*.

        Args:
            client: The API server.
            instance: Which process reports.
            waiting: Events that may wait to be written; more are dropped.
            timeout: Seconds for one request.
            tries: How often an Event is sent that the API server does not take.
            first_pause: Seconds before the second try at most; each next one is the double.
            count: Counts what became of an Event.
        """
        self._client = client
        self._instance = instance[:128]
        self._timeout = timeout
        self._tries = tries
        self._first_pause = first_pause
        self._count = count
        self._queue: asyncio.Queue[tuple[Hashable, dict[str, Any]]] = asyncio.Queue(waiting)
        self._recent: OrderedDict[Hashable, _Series] = OrderedDict()

    def report(
        self,
        regarding: Mapping[str, str],
        reason: str,
        note: str,
        *,
        kind: Literal["Normal", "Warning"] = "Warning",
        action: str,
        controller: str,
        series: Hashable = None,
    ) -> None:
        """Queue an Event of now, if there is room; never waits.

        Args:
            regarding: The object that it is about, with its namespace and name.
            reason: Why, in CamelCase.
            note: The same for people; what is too long is cut.
            kind: Whether it is a warning.
            action: What was done, in CamelCase.
            controller: Who reports, such as "moorage-binder".
            series: Reports of the same one repeat each other; None if it has no others.
        """
        if self._queue.full():
            self._count("dropped")
            return
        moment = datetime.now(UTC)
        nanoseconds = int(moment.timestamp() * 1e6) * 1000
        name = f"{regarding['name'][:LONGEST_NAME].rstrip('.-')}.{nanoseconds:x}"
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": regarding["namespace"]},
            "eventTime": micro_time(moment),
            "reportingController": controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "type": kind,
            "note": printable(note, lines=True).encode()[:LONGEST_NOTE].decode(errors="ignore"),
            "regarding": dict(regarding),
        }
        self._queue.put_nowait((series, event))

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            series, event = await self._queue.get()
            try:
                await self._write_with_retries(series, event)
                self._count("written")
            except Exception as error:  # noqa: BLE001 - an Event must not end the process
                self._count("failed")
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

    async def _write_with_retries(self, series: Hashable, event: dict[str, Any]) -> None:
        backoff = Backoff(self._first_pause, 10 * self._first_pause)
        for remaining in reversed(range(self._tries)):
            try:
                await self._write(series, event)
            except (KubeError, TimeoutError) as error:
                if not remaining or not _is_passing(error):
                    raise
                await asyncio.sleep(backoff.next(getattr(error, "retry_after", None)))
            else:
                return

    async def _write(self, series: Hashable, event: dict[str, Any]) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{event['metadata']['namespace']}/events"
        before, now = self._recent.get(series), time.monotonic()
        if before is not None and now - before.last <= SERIES_SECONDS:
            change = {"count": before.count + 1, "lastObservedTime": event["eventTime"]}
            try:
                await self._send("PATCH", f"{path}/{before.name}", {"series": change}, MERGE_PATCH)
            except KubeStatusError as error:
                if error.status != 404:  # it may be gone, as Events are after an hour
                    raise
            else:
                before.count, before.last = before.count + 1, time.monotonic()
                return
        try:
            await self._send("POST", path, event)
        except KubeStatusError as error:
            if error.reason != "AlreadyExists":  # written by a try whose answer was lost
                raise
        if series is not None:
            self._recent[series] = _Series(event["metadata"]["name"], 1, time.monotonic())
            self._recent.move_to_end(series)
            if len(self._recent) > self._queue.maxsize:
                self._recent.popitem(last=False)

    async def _send(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any],
        content_type: str = "application/json",
    ) -> None:
        body, timeout = msgspec.json.encode(content), self._timeout
        answer = await self._client.request(
            method, path, body=body, content_type=content_type, timeout=timeout
        )
        answer.check()


def _is_passing(error: KubeError | TimeoutError) -> bool:
    if isinstance(error, KubeStatusError):
        return error.status == 429 or error.status >= 500
    return True
