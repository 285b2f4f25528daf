"""One watch: what a client asks for, which events it gets, and when it ends.

A watch has no queue: it keeps how far it has read and looks into the collection's history.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Literal

from sandbox.apiserver.errors import StatusError, expired
from sandbox.apiserver.lies import Lie
from sandbox.apiserver.printing import Format, event
from sandbox.apiserver.resources.table import Target
from sandbox.apiserver.settings import Settings
from sandbox.apiserver.store.cluster import EmbeddedCluster
from sandbox.apiserver.store.lists import Selection, flag, select, selected, whole_number
from sandbox.apiserver.store.store import StoreEvent, encode

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
BATCH = 500
"""Events that are written at once."""


class Watch:
    """Follows one collection for one client.

    Raises:
        StatusError: 400, the parameters make no sense.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        target: Target,
        query: Mapping[str, str],
        shape: Format,
        settings: Settings,
    ) -> None:
        version, asked = whole_number(query, "resourceVersion"), query.get("sendInitialEvents")
        self.selection = select(target.resource, target.namespace, query)
        self.ended: Literal["", "dropped", "expired"] = ""
        self.lie: Lie | None = None
        self._store = cluster.store
        self._collection = cluster.collection(target.resource)
        self._format = shape
        self._initial = flag(query, "sendInitialEvents") if asked else version == 0
        self._bookmarks = flag(query, "allowWatchBookmarks")
        self._marks_end = bool(asked) and self._bookmarks
        self._seconds = whole_number(query, "timeoutSeconds") or settings.watch_seconds
        self._bookmark_seconds = settings.bookmark_seconds
        present = self._store.revision
        self._position = present if self._initial else version or present

    def end(self, how: Literal["dropped", "expired"]) -> None:
        """Stop the watch from outside, as a fault."""
        self.ended = how
        self._collection.changed.send()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield encoded events, some at a time, until the watch ends."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        if self._initial:
            for chunk in self._present():
                yield chunk
        bookmark_at = loop.time() + self._bookmark_seconds
        while loop.time() < deadline and self.ended != "dropped":
            if self.ended == "expired" or self._is_expired():
                yield error_line(self._expired())
                return
            for chunk in self._news():
                yield chunk
            if self._bookmarks and loop.time() >= bookmark_at:
                yield self._bookmark()
                bookmark_at = loop.time() + self._bookmark_seconds
            if not self._is_behind() and not self.ended:
                wake_at = min(deadline, bookmark_at) if self._bookmarks else deadline
                await self._collection.changed.wait(wake_at - loop.time())

    def _is_expired(self) -> bool:
        # A version from the future comes from another server: its objects are unknown here.
        return not self._collection.forgotten <= self._position <= self._store.revision

    def _is_behind(self) -> bool:
        return self._is_expired() or next(self._collection.since(self._position), None) is not None

    def _present(self) -> Iterator[bytes]:
        resource = self.selection.resource
        items = selected(self._store, self.selection)
        self._position = self._store.revision
        for start in range(0, len(items), BATCH):
            batch = items[start : start + BATCH]
            yield b"".join(event("ADDED", self._format.one(resource, i)) for i in batch)
        if self._marks_end:
            yield self._bookmark({INITIAL_EVENTS_END: "true"})

    def _news(self) -> Iterator[bytes]:
        changes = list(self._collection.since(self._position))
        # Nothing newer is in this collection, so the watch is as new as the store.
        self._position = self._store.revision
        for start in range(0, len(changes), BATCH):
            lines = b"".join(map(self._line, changes[start : start + BATCH]))
            if lines:
                yield lines

    def _line(self, change: StoreEvent) -> bytes:
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


def transition(selection: Selection, change: StoreEvent) -> str:
    """Return what the change is to a client that sees only the selected objects; "" is nothing."""
    before = change.previous is not None and selection.matches(change.previous.object)
    after = change.kind != "DELETED" and selection.matches(change.item.object)
    if before:
        return "MODIFIED" if after else "DELETED"
    return "ADDED" if after else ""


def error_line(error: StatusError) -> bytes:
    """Write the event with the reason why a watch fails."""
    return event("ERROR", encode(error.status()))
