"""Follows all objects of one kind at the API server, without gaps and without partial lists.

The gateway runs a reflector for nodes, one for pods, and one for each additional kind that plugins
read. Its life, over and over:

    list    A watch with all objects at its beginning (a streamed list), or LIST in pages where the
            server cannot do that. The first list is handed over when it is complete; later ones
            after a watch that was lost: only what differs, and what is gone.
    watch   Each event is handed over as it comes. Bookmarks are the heartbeat: a watch that is
            silent for longer than two of them is dead, even if TCP still considers it open.
    end     Whatever ended the watch, the next one goes on from the same position (the resource
            version) if it can: only 410, an answer that cannot be true and a gateway that takes
            over need a new list. Waits grow while watches fail, though less in an outage.

So that a list is compared with what was handed over, the version of each object is kept.
"""

import asyncio
import math
import random
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
import structlog
from prometheus_client import Counter

from gateway.cluster.endings import FAILURES, Ending, EndlessListError, Restart, Waits, WatchLimits
from gateway.cluster.wire import (
    EVENTS,
    INITIAL_EVENTS_END,
    Bookmark,
    Event,
    Identity,
    Resource,
    decode_bookmark,
    decode_event,
    decode_header,
    decode_list,
    error_of,
    is_expired,
    is_missing,
    unknown_object,
)
from moorage_host.kube import (
    UNREADABLE,
    KubeAnswerError,
    KubeClient,
    KubeStatusError,
    KubeUnreachableError,
)
from moorage_host.kube.client import MOST_PAGES, ObjectList

T = TypeVar("T")

SHORT_WATCH = 1.0
"""Seconds; a watch that ends earlier was not worth its start."""

LIE_SECONDS = 10.0
"""For how long it is reported that the API server has lied, although all is right again."""

_log = structlog.get_logger()


class Reflector(Generic[T]):
    """Hands over the objects of one kind as they come, change and go.

    Args:
        client: The API server.
        resource: What is followed.
        put: Takes an object that is new or changed. Neither this nor *drop* may wait or raise.
        drop: Forgets an object by its key, which was given before.
        received: Returns what counts events of a type, such as "ADDED".
        restarted: Counts a watch that ended.
        limits: How patient to be.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[T],
        *,
        put: Callable[[T], object],
        drop: Callable[[str], object],
        received: Callable[[str], Counter],
        restarted: Callable[[Restart], object],
        limits: WatchLimits | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once the first list was handed over, and never cleared."""
        self.last_heard = -math.inf
        """When the API server last sent something, on the monotonic clock."""
        self.problem = ""
        """Why the last watch ended; empty from the next watch on."""
        self._client = client
        self._resource = resource
        self._key = attrgetter(resource.key)
        self._keys_are_uids = resource.key == "uid"
        self._put, self._drop = put, drop
        self._received, self._restarted = received, restarted
        self._limits = limits or WatchLimits()
        # UID and resource version: the garbage collector would look at each of 150,000 pairs.
        self._versions: dict[str, str] = {}
        self._unread: set[str] = set()  # keys of objects that are left out
        self._position = ""  # the resource version to go on from
        self._lie = ""
        self._lied_at = -math.inf
        self._lost_at: float | None = None  # since when no watch is open
        self._expired_at = -math.inf
        self._streamed_list = True
        self._served = True
        self._scope = asyncio.timeout(None)
        self._as_of = -math.inf  # everything was handed over that happened before
        self._list_began = -math.inf
        self._listed = asyncio.Event()

    def age(self) -> float:
        """Return how long the API server has been silent, in seconds; infinite at first."""
        return time.monotonic() - self.last_heard

    def interruption(self) -> float:
        """Return for how many seconds no watch has been open after the first; 0 if one is."""
        return 0.0 if self._lost_at is None else time.monotonic() - self._lost_at

    def note(self) -> str:
        """Return what is wrong now, or what was sent lately that is not true; or nothing."""
        if self.problem:
            return self.problem
        seconds = time.monotonic() - self._lied_at
        return f"{self._lie} ({seconds:.0f} s ago)" if seconds < LIE_SECONDS else ""

    async def until(self, as_of: float) -> None:
        """Wait until what happened before *as_of*, which is over, was handed over; list for it."""
        while self._as_of < as_of:
            if self._list_began < as_of:
                self._position = ""
                if self._scope.when() is None:
                    with suppress(RuntimeError):  # nothing is followed right now
                        self._scope.reschedule(asyncio.get_running_loop().time())
            self._listed.clear()
            await self._listed.wait()

    async def run(self) -> NoReturn:
        """Follow until cancelled."""
        waits = Waits(self._limits)
        while True:
            opened = time.monotonic()
            try:
                async with asyncio.timeout(None) as self._scope:
                    await self._follow()
                # A server that hangs up straight away is not to be called again at once.
                lasted = time.monotonic() - opened
                ending = Ending(Restart.CLOSED, at_once=lasted >= SHORT_WATCH)
            except FAILURES as error:
                missing = await is_missing(self._client, self._resource, error)
                ending = self._not_served() if missing else self._failed(error)
            self._restarted(ending.reason)
            if self._lost_at is None and ending.reason is not Restart.NOT_SERVED:
                self._lost_at = time.monotonic()
            await asyncio.sleep(waits.next(ending, time.monotonic() - opened))

    async def _follow(self) -> None:
        """List if there is no position, and watch."""
        full: _FullList[T] | None = None
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        if not self._position:
            self._list_began = time.monotonic()
            if self._streamed_list:
                full = _FullList()
            else:
                await self._list()
        if full is None:
            query = {}
        try:
            async with (
                asyncio.timeout(self._limits.initial_events if full else None) as listing,
                aclosing(self._watch({**query, "resourceVersion": self._position})) as lines,
            ):
                async for line in lines:
                    event: Event = decode_event(line)
                    self.last_heard = time.monotonic()
                    if full is None:
                        self.problem = ""
                    if event.type not in EVENTS:
                        raise KubeAnswerError(f"an event of type {event.type[:20]}")
                    self._received(event.type).inc()
                    if event.type == "ERROR":
                        raise error_of(self._resource.path, event)
                    if event.type == "BOOKMARK":
                        bookmark: Bookmark = decode_bookmark(event.object)
                        position = bookmark.metadata.resource_version
                        if full is None:
                            self._go_on(position)
                            shown = time.monotonic() - self._limits.bookmark_lag
                            self._as_of = max(self._as_of, shown)
                        elif bookmark.metadata.annotations.get(INITIAL_EVENTS_END) == "true":
                            self._complete(full, position)
                            full = None
                            listing.reschedule(None)
                    elif full is not None:
                        self._collect(full, event.object, event.type)
                    else:
                        self._apply(event)
        except TimeoutError as error:
            if not listing.expired():
                raise
            seconds = f"{self._limits.initial_events:g} s"
            raise EndlessListError(
                f"{self._resource.path}: a streamed list without end for {seconds}"
            ) from error

    async def _list(self) -> None:
        full: _FullList[T] = _FullList()
        query = {**self._resource.query, "limit": str(self._limits.page_size)}
        for _ in range(MOST_PAGES):  # of now, not of the server's cache
            response = await self._client.request(
                "GET", self._resource.path, query=query, timeout=self._limits.list_timeout
            )
            page: ObjectList = decode_list(response.check().body)
            self.last_heard = time.monotonic()
            for raw in page.items or ():
                self._collect(full, raw)
            if not page.metadata.next_page:
                self._complete(full, page.metadata.resource_version)
                return
            query["continue"] = page.metadata.next_page
        raise KubeAnswerError(f"a list of more than {MOST_PAGES} pages")

    def _watch(self, query: dict[str, str]) -> Any:
        life = self._limits.watch_life
        common = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(math.ceil(random.uniform(life, 2 * life))),
        }
        return self._client.stream_lines(
            self._resource.path,
            query={**self._resource.query, **common, **query},
            silence=self._limits.silence,
            opened=self._opened,
        )

    def _opened(self) -> None:
        """Note that a watch is open; one with a position goes on where the last one ended."""
        if self._position:
            self._lost_at = None
            self.last_heard, self.problem = time.monotonic(), ""

    def _apply(self, event: Event) -> None:
        """Hand over a change."""
        identity: Identity = decode_header(event.object).metadata
        key, position = self._key(identity), identity.resource_version
        known = self._versions.get(key)
        if known is None and event.type != "ADDED" and key not in self._unread:
            raise unknown_object(event.type, identity)
        if len(position) != len(self._position) or position < self._position:
            self._go_on(position)
        self._position = position
        version = f"{identity.uid} {position}"
        is_gone = event.type == "DELETED"
        if known is not None and (
            is_gone or not (self._keys_are_uids or _same_object(known, version))
        ):
            del self._versions[key]
            self._drop(key)
        if self._unread:
            self._unread.discard(key)
        if is_gone:
            return
        if (obj := self._decoded(event.object)) is not None:
            self._versions[key] = version
            self._put(obj)
        else:
            self._unread.add(key)

    def _go_on(self, position: str) -> None:
        """Take a resource version as the position, unless it is lower than that.

        Versions are decimal numbers, by Kubernetes' rules; others are not compared.
        """
        before = self._position
        if (len(position), position) < (len(before), before) and (position + before).isdecimal():
            raise KubeAnswerError(f"version {position} comes after {before}")
        self._position = position

    def _collect(self, full: "_FullList[T]", raw: msgspec.Raw, event: str = "ADDED") -> None:
        """Take an object into a list; one that was handed over in this version is not decoded."""
        identity: Identity = decode_header(raw).metadata
        key, version = self._key(identity), f"{identity.uid} {identity.resource_version}"
        if not key or not identity.resource_version:
            raise KubeAnswerError("an object without a name or a version")
        if event != "ADDED" and key not in full.versions and key not in full.unread:
            raise unknown_object(event, identity)
        full.versions.pop(key, None)
        full.changed.pop(key, None)
        full.unread.discard(key)
        if event == "DELETED":
            return
        if self._versions.get(key) != version:
            if (obj := self._decoded(raw)) is None:
                full.unread.add(key)
                return
            full.changed[key] = obj
        full.versions[key] = version

    def _complete(self, full: "_FullList[T]", position: str) -> None:
        """Hand over in one go how a full list differs from what was handed over."""
        before, self._versions, self._unread = self._versions, full.versions, full.unread
        for key, version in before.items():
            now = full.versions.get(key)
            if now is None or not _same_object(now, version):
                self._drop(key)
        for obj in full.changed.values():
            self._put(obj)
        self._position = position
        self._served = True
        self._lost_at, self.problem = None, ""
        self._as_of = max(self._as_of, self._list_began)
        self._listed.set()
        self.synced.set()
        _log.info("A full list is in", path=self._resource.path, objects=len(full.versions))

    def _decoded(self, raw: msgspec.Raw) -> T | None:
        """Read an object; one that cannot be read is left out, so that the others go on."""
        try:
            return self._resource.decode(raw)
        except UNREADABLE as error:
            name = decode_header(raw).metadata.name
            _log.exception("An object cannot be read and is left out", name=name, error=str(error))
            return None

    def _failed(self, error: Exception) -> Ending:
        """Work out what a failure means for the next watch."""
        retry_after, at_once = None, False
        match error:
            case KubeStatusError() if is_expired(error):
                self._position = ""
                # At once, but not over and over: the server answers, and is not busy.
                last, self._expired_at = self._expired_at, time.monotonic()
                reason, at_once = Restart.EXPIRED, self._expired_at - last >= SHORT_WATCH
            case KubeStatusError() if self._lists_no_streams(error):
                self._streamed_list = False
                reason, at_once = Restart.NO_STREAMED_LIST, True
            case KubeStatusError() if error.status >= 400:
                reason = Restart.SERVER_ERROR if error.status >= 500 else Restart.REFUSED
                reason = Restart.THROTTLED if error.status == 429 else reason
                retry_after = error.retry_after
            case EndlessListError():
                self._streamed_list = False
                reason, at_once = Restart.NO_STREAMED_LIST, True
            case TimeoutError() if self._scope.expired():
                self._position = ""
                return Ending(Restart.RELISTED, at_once=True)
            case TimeoutError():
                reason = Restart.SILENT
            case KubeUnreachableError():
                reason = Restart.UNREACHABLE
            case _:
                self._position = ""
                reason = Restart.MALFORMED
                path = self._resource.path
                self._lie = f"what the API server sends about {path} is not true: {error}"
                self._lied_at = time.monotonic()
        self.problem = self._lie if reason is Restart.MALFORMED else str(error)
        _log.warning(
            "The watch starts again", path=self._resource.path, reason=reason, error=str(error)
        )
        return Ending(reason, at_once=at_once, retry_after=retry_after)

    def _lists_no_streams(self, error: KubeStatusError) -> bool:
        return error.status in (400, 422) and self._streamed_list and not self._position

    def _not_served(self) -> Ending:
        """Take the collection for empty, and look again later."""
        if self._served:
            self._complete(_FullList(), "")
            self._served = False
            _log.info("The API server does not serve a kind", path=self._resource.path)
        self._position = ""
        self.last_heard, self.problem = time.monotonic(), ""
        return Ending(Restart.NOT_SERVED)


@dataclass(slots=True)
class _FullList(Generic[T]):
    """A list in the making: versions by key, objects that were not handed over, keys left out."""

    versions: dict[str, str] = field(default_factory=dict)
    changed: dict[str, T] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)


def _same_object(version: str, other: str) -> bool:
    return version.partition(" ")[0] == other.partition(" ")[0]
