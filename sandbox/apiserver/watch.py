"""One watch: what a client asks for, which events it gets, and when it ends.

A watch has no queue: it keeps how far it has read and looks into the collection's history.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from sandbox.apiserver import errors
from sandbox.apiserver.errors import StatusError, expired
from sandbox.apiserver.printing import Format, event
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.selection import Selection, flag, select, whole_number
from sandbox.apiserver.store.store import Change, encode

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
BATCH = 500
"""Events that are written at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What the client asked for."""

    since: int | None
    """None: begin with the present objects (if `initial`), then follow."""
    initial: bool
    bookmarks: bool
    end_of_initial: bool
    """Send the bookmark that ends the initial events."""
    timeout_seconds: float
    bookmark_seconds: float


class Watch:
    """Follows one collection for one client."""

    def __init__(
        self, cluster: Cluster, selection: Selection, shape: Format, options: WatchOptions
    ) -> None:
        self.selection = selection
        self.ended: Literal["", "dropped", "expired"] = ""
        self._cluster = cluster
        self._collection = cluster.collection(selection.resource)
        self._format = shape
        self._options = options
        self._position = cluster.store.revision if options.since is None else options.since

    def end(self, how: Literal["dropped", "expired"]) -> None:
        """Stop the watch from outside, as a fault."""
        self.ended = how
        self._collection.changed.send()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield encoded events, some at a time, until the watch ends."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.timeout_seconds
        if self._options.initial:
            for chunk in self._initial():
                yield chunk
        bookmark_at = loop.time() + self._options.bookmark_seconds
        while loop.time() < deadline and self.ended != "dropped":
            if self.ended == "expired" or self._is_expired():
                yield error_line(self._expired())
                return
            for chunk in self._news():
                yield chunk
            if self._options.bookmarks and loop.time() >= bookmark_at:
                yield self._bookmark()
                bookmark_at = loop.time() + self._options.bookmark_seconds
            if not self._is_behind() and not self.ended:
                wake_at = min(deadline, bookmark_at) if self._options.bookmarks else deadline
                await self._collection.changed.wait(wake_at - loop.time())

    def _is_expired(self) -> bool:
        # A version from the future comes from another server: its objects are unknown here.
        return not self._collection.forgotten <= self._position <= self._cluster.store.revision

    def _is_behind(self) -> bool:
        return self._is_expired() or next(self._collection.since(self._position), None) is not None

    def _initial(self) -> Iterator[bytes]:
        resource = self.selection.resource
        items = self._cluster.list(self.selection)
        self._position = self._cluster.store.revision
        for start in range(0, len(items), BATCH):
            batch = items[start : start + BATCH]
            yield b"".join(event("ADDED", self._format.one(resource, i)) for i in batch)
        if self._options.end_of_initial:
            yield self._bookmark({INITIAL_EVENTS_END: "true"})

    def _news(self) -> Iterator[bytes]:
        changes = list(self._collection.since(self._position))
        # Nothing newer is in this collection, so the watch is as new as the store.
        self._position = self._cluster.store.revision
        for start in range(0, len(changes), BATCH):
            lines = b"".join(map(self._line, changes[start : start + BATCH]))
            if lines:
                yield lines

    def _line(self, change: Change) -> bytes:
        kind = transition(self.selection, change)
        return self._format.line(self.selection.resource, kind, change) if kind else b""

    def _bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        resource = self.selection.resource
        metadata: dict[str, object] = {"resourceVersion": str(self._position)}
        if annotations:
            metadata["annotations"] = annotations
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return event("BOOKMARK", encode(obj))

    def _expired(self) -> StatusError:
        return expired(f"too old resource version: {self._position} ({self._collection.forgotten})")


def transition(selection: Selection, change: Change) -> str:
    """Return what the change is to a client that sees only the selected objects; "" is nothing."""
    before = change.previous is not None and selection.matches(change.previous.object)
    after = change.kind != "DELETED" and selection.matches(change.item.object)
    if before:
        return "MODIFIED" if after else "DELETED"
    return "ADDED" if after else ""


def error_line(error: StatusError) -> bytes:
    """Write the event with the reason why a watch fails."""
    return event("ERROR", encode(error.status()))


NOT_OLDER = "NotOlderThan"


def open_watch(
    cluster: Cluster, target: Target, query: Mapping[str, str], form: Format, settings: Settings
) -> Watch:
    """Prepare a watch.

    Raises:
        StatusError: 400 or 422, the parameters make no sense.
    """
    check_list_options(query, watch=True)
    selection = select(target.resource, target.namespace, query)
    return Watch(cluster, selection, form, _options(query, settings))


def check_list_options(query: Mapping[str, str], *, watch: bool) -> None:
    """Check the parameters that depend on each other.

    Raises:
        StatusError: 422.
    """
    match, initial = query.get("resourceVersionMatch", ""), query.get("sendInitialEvents", "")
    if initial and not watch:
        _refuse("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if initial and match != NOT_OLDER:
        why = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"
        _refuse("resourceVersionMatch", why)
    if watch and match and not initial:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        _refuse("resourceVersionMatch", why)
    if not watch and match and not query.get("resourceVersion"):
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        _refuse("resourceVersionMatch", why)


def _options(query: Mapping[str, str], settings: Settings) -> WatchOptions:
    version = whole_number(query, "resourceVersion", 0)
    asked = query.get("sendInitialEvents", "")
    initial = flag(query, "sendInitialEvents") if asked else version == 0
    bookmarks = flag(query, "allowWatchBookmarks")
    return WatchOptions(
        since=None if initial or version == 0 else version,
        initial=initial,
        bookmarks=bookmarks,
        end_of_initial=bool(asked) and initial and bookmarks,
        timeout_seconds=whole_number(query, "timeoutSeconds", 0) or settings.watch_seconds,
        bookmark_seconds=settings.bookmark_seconds,
    )


def _refuse(field: str, why: str) -> None:
    cause = errors.forbidden_value(field, why)
    raise errors.invalid("ListOptions", "", [cause], group="meta.k8s.io")
