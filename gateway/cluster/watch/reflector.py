"""Follows all objects of one kind at the API server and feeds them to a sink.

The gateway runs one for nodes, one for pods, and one for each further kind that plugins read. It
asks for a streamed list first (watch-list) and falls back to LIST and WATCH where the server cannot
do that. Bookmarks are the heartbeat: a watch that is silent for longer than two of them is dead,
even if TCP still considers it open.
"""

import asyncio
import math
import random
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Generic, NoReturn, TypeVar

import msgspec
import structlog

from gateway.cluster.watch.endings import Ending, NoStreamedListError, Waits
from gateway.cluster.watch.freshness import Freshness
from gateway.cluster.watch.limits import Observer, ReflectorLimits, Restart
from gateway.cluster.watch.mirror import Collection, Decode, Key, Mirror, Sink
from gateway.cluster.watch.wire import (
    Bookmark,
    Event,
    ObjectList,
    decode_bookmark,
    decode_event,
    decode_list,
    error_of,
    is_expired,
)
from moorage_host.kube import KubeClient, KubeStatusError, KubeUnreachableError

T = TypeVar("T")

SHORT_WATCH = 1.0

_log = structlog.get_logger()


class Reflector(Generic[T]):
    """Keeps one sink in step with the API server.

    Args:
        client: The API server.
        path: The collection, such as "/api/v1/nodes".
        sink: Who holds the objects.
        decode: Reads an object from JSON; raises msgspec.DecodeError for what it cannot read.
        key: What names an object in `Sink.delete`: its name, or its uid.
        observer: Who counts.
        query: More query parameters, such as a fieldSelector.
        optional: Whether a server without this collection counts as one where it is empty.
        limits: How patient to be.
    """

    def __init__(
        self,
        client: KubeClient,
        path: str,
        *,
        sink: Sink[T],
        decode: Decode[T],
        key: Key,
        observer: Observer,
        query: Mapping[str, str] | None = None,
        optional: bool = False,
        limits: ReflectorLimits | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once the sink has had a full list, and never cleared."""
        self.last_heard = -math.inf
        """When the API server last sent something, on the monotonic clock."""
        self.problem = ""
        """Why the last watch ended; empty from the next watch on."""
        self._client = client
        self._path = path
        self._query = dict(query or {})
        self._observer = observer
        self._optional = optional
        self._limits = limits or ReflectorLimits()
        self._mirror = Mirror(sink, decode=decode, key=key)
        self._position = ""  # the opaque resource version to go on from
        self._lost_at: float | None = None  # since when no watch is open
        self._expired_at = -math.inf
        self._streamed_list = True
        self._served = True
        self._fresh = Freshness()
        self._scope = asyncio.timeout(None)

    def age(self) -> float:
        """Return how long the API server has been silent, in seconds; infinite at first."""
        return time.monotonic() - self.last_heard

    def interruption(self) -> float:
        """Return for how many seconds no watch has been open after the first; 0 if one is."""
        return 0.0 if self._lost_at is None else time.monotonic() - self._lost_at

    async def until(self, as_of: float) -> None:
        """Wait until the sink has what happened before *as_of*, which is over; list for it."""
        while self._fresh.as_of < as_of:
            if self._fresh.list_began < as_of:
                self._position = ""
                if self._scope.when() is None:
                    with suppress(RuntimeError):  # nothing is followed right now
                        self._scope.reschedule(asyncio.get_running_loop().time())
            await self._fresh.next_list()

    async def run(self) -> NoReturn:
        """Follow until cancelled."""
        waits = Waits(self._limits)
        while True:
            opened = time.monotonic()
            ending = await self._follow_until_it_ends()
            self._observer.restarted(ending.reason)
            if self._lost_at is None and ending.reason is not Restart.NOT_SERVED:
                self._lost_at = time.monotonic()
            await asyncio.sleep(waits.next(ending, time.monotonic() - opened))

    async def _follow_until_it_ends(self) -> Ending:
        opened = time.monotonic()
        try:
            async with asyncio.timeout(None) as self._scope:
                await self._follow()
        except KubeStatusError as error:
            return self._refused(error)
        except (msgspec.DecodeError, RecursionError) as error:
            self._position = ""
            return self._failed(Restart.MALFORMED, error)
        except TimeoutError as error:
            if self._scope.expired():
                self._position = ""
                return Ending(Restart.RELISTED, at_once=True)
            return self._failed(Restart.SILENT, error)
        except KubeUnreachableError as error:
            return self._failed(Restart.UNREACHABLE, error)
        except NoStreamedListError as error:
            self._streamed_list = False
            return self._failed(Restart.NO_STREAMED_LIST, error, at_once=True)
        # A server that hangs up straight away is not to be called again at once.
        lasted = time.monotonic() - opened
        return Ending(Restart.CLOSED, at_once=lasted >= SHORT_WATCH)

    def _refused(self, error: KubeStatusError) -> Ending:
        if error.status == 404 and self._optional:
            return self._not_served()
        if is_expired(error):
            return self._expired(error)
        if error.status in (400, 422) and self._streamed_list and not self._position:
            self._streamed_list = False
            return self._failed(Restart.NO_STREAMED_LIST, error, at_once=True)
        if error.status == 429:
            return self._failed(Restart.THROTTLED, error, retry_after=error.retry_after)
        reason = Restart.SERVER_ERROR if error.status >= 500 else Restart.REFUSED
        return self._failed(reason, error, retry_after=error.retry_after)

    def _expired(self, error: KubeStatusError) -> Ending:
        """Take a new list at once, but not over and over: the server answers, and is not busy."""
        self._position = ""
        last, self._expired_at = self._expired_at, time.monotonic()
        again = self._expired_at - last < SHORT_WATCH
        return self._failed(Restart.EXPIRED, error, at_once=not again)

    def _not_served(self) -> Ending:
        """Take the collection for empty, and look again later."""
        if self._served:
            self._complete(Collection(self._mirror), "")
            self._served = False
            _log.info("The API server does not serve a kind", path=self._path)
        self._position = ""
        self._mark_alive()
        return Ending(Restart.NOT_SERVED)

    def _failed(
        self,
        reason: Restart,
        error: Exception,
        *,
        at_once: bool = False,
        retry_after: float | None = None,
    ) -> Ending:
        self.problem = str(error)
        _log.warning("The watch starts again", path=self._path, reason=reason, error=str(error))
        return Ending(reason, at_once=at_once, retry_after=retry_after)

    async def _follow(self) -> None:
        if not self._position:
            self._fresh.begin_list()
        if not self._position and self._streamed_list:
            await self._follow_from_streamed_list()
            return
        if not self._position:
            await self._list()
        query = {"resourceVersion": self._position}
        async with aclosing(self._watch(query)) as lines:
            await self._apply_all(lines)

    async def _follow_from_streamed_list(self) -> None:
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        async with aclosing(self._watch({**query, "resourceVersion": ""})) as lines:
            if await self._collect_in_time(lines):
                await self._apply_all(lines)

    async def _collect_in_time(self, lines: AsyncGenerator[bytes, None]) -> bool:
        limit = asyncio.timeout(self._limits.initial_events)
        try:
            async with limit:
                return await self._collect(lines)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise NoStreamedListError(
                f"{self._path}: a streamed list without end for {self._limits.initial_events:g} s"
            ) from error

    async def _collect(self, lines: AsyncGenerator[bytes, None]) -> bool:
        """Gather the initial events; return whether they were complete before the stream ended."""
        full = Collection(self._mirror)
        async for line in lines:
            event = self._read(line)
            if event.type != "BOOKMARK":
                full.apply(event)
            elif (bookmark := decode_bookmark(event.object)).ends_initial_events:
                self._complete(full, bookmark.metadata.resource_version)
                return True
        return False

    async def _list(self) -> None:
        full = Collection(self._mirror)
        limit = str(self._limits.page_size)
        page: ObjectList = await self._page({"limit": limit})  # of now, not of the server's cache
        while True:
            for raw in page.items or ():
                full.add(raw)
            if not page.metadata.next_page:
                break
            page = await self._page({"limit": limit, "continue": page.metadata.next_page})
        self._complete(full, page.metadata.resource_version)

    async def _page(self, query: dict[str, str]) -> ObjectList:
        timeout = self._limits.list_timeout
        query = {**self._query, **query}
        response = await self._client.request("GET", self._path, query=query, timeout=timeout)
        page: ObjectList = decode_list(response.check().body)
        self._mark_alive()
        return page

    def _complete(self, full: Collection[T], position: str) -> None:
        self._mirror.swap(full)
        self._position = position
        self._served = True
        self._lost_at = None
        self._fresh.complete_list()
        self.synced.set()
        _log.info("A full list is in", path=self._path, objects=len(full.versions))

    def _watch(self, query: dict[str, str]) -> AsyncGenerator[bytes, None]:
        life = self._limits.watch_life
        common = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(math.ceil(random.uniform(life, 2 * life))),
        }
        query = {**self._query, **common, **query}
        silence = self._limits.silence
        return self._client.stream_lines(
            self._path, query=query, silence=silence, opened=self._opened
        )

    def _opened(self) -> None:
        """Note that a watch is open; one with a position goes on where the last one ended."""
        if self._position:
            self._lost_at = None
            self._mark_alive()

    async def _apply_all(self, lines: AsyncGenerator[bytes, None]) -> None:
        async for line in lines:
            event = self._read(line)
            if event.type == "BOOKMARK":
                bookmark: Bookmark = decode_bookmark(event.object)
                self._position = bookmark.metadata.resource_version
                self._fresh.show(time.monotonic() - self._limits.bookmark_lag)
            else:
                self._position = self._mirror.apply(event)

    def _read(self, line: bytes) -> Event:
        event: Event = decode_event(line)
        self._mark_alive()
        self._observer.received(event.type)
        if event.type == "ERROR":
            raise error_of(f"watch of {self._path}", event)
        return event

    def _mark_alive(self) -> None:
        self.last_heard = time.monotonic()
        self.problem = ""
