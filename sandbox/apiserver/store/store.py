"""The objects, their versions and the recent changes: etcd and the watch cache in one.

Stored objects are never modified in place: a change stores a new dict. So lists, the history and
every watcher share them, and each is encoded once. Nothing awaits, so every call is atomic.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from sandbox.apiserver.resources.table import Object


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Write a time as metadata carries it, in whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


Kind: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]

encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode


class Item:
    """One version of one object."""

    __slots__ = ("_raw", "object", "revision")

    def __init__(self, obj: Object, revision: int) -> None:
        self.object: Final = obj
        self.revision: Final = revision
        self._raw: bytes | None = None

    @property
    def raw(self) -> bytes:
        """The object as JSON."""
        if self._raw is None:
            self._raw = encode(self.object)
        return self._raw


class StoreEvent:
    """One step in the history of a collection, and its encodings for watchers."""

    __slots__ = ("item", "kind", "lines", "previous", "revision")

    def __init__(self, kind: Kind, item: Item, previous: Item | None) -> None:
        self.kind: Final = kind
        self.item: Final = item
        self.previous: Final = previous
        self.revision: Final = item.revision
        self.lines: Final[dict[tuple[str, str], bytes]] = {}


class Signal:
    """Wakes all waiters at once; each then looks at the state for itself."""

    def __init__(self) -> None:
        self._next: asyncio.Future[None] | None = None

    def send(self) -> None:
        """Wake all who wait now."""
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def wait(self, timeout_seconds: float) -> None:
        """Return at the next `send`, or when the time is over."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        # asyncio.wait leaves the shared future alone when one waiter is cancelled.
        await asyncio.wait([self._next], timeout=max(timeout_seconds, 0.0))


class Collection:
    """All objects of one storage, by namespace and name, with the newest changes."""

    def __init__(self, history: int, revision: int) -> None:
        self._history = history
        self._items: dict[str, dict[str, Item]] = {}
        self._changes: list[StoreEvent] = []
        self.forgotten = revision
        """The revision up to which changes are no longer kept."""
        self.changed = Signal()

    def get(self, namespace: str, name: str) -> Item | None:
        """Return the current version of an object."""
        return self._items.get(namespace, {}).get(name)

    def list(self, namespace: str | None) -> list[Item]:
        """Return the objects in the order of their keys; None means all namespaces."""
        spaces = sorted(self._items) if namespace is None else [namespace]
        return [item for space in spaces for _, item in sorted(self._items.get(space, {}).items())]

    def oldest(self, namespace: str, most: int) -> Item | None:
        """Return the object that was created first if a namespace has more than so many."""
        items = self._items.get(namespace, {})
        return next(iter(items.values())) if len(items) > most else None

    def has_any(self, namespace: str) -> bool:
        """Return whether the namespace has objects here."""
        return bool(self._items.get(namespace))

    def since(self, revision: int) -> Iterator[StoreEvent]:
        """Yield the kept changes after `revision`, oldest first."""
        start = len(self._changes)
        while start and self._changes[start - 1].revision > revision:
            start -= 1
        return iter(self._changes[start:])

    def forget(self, revision: int) -> None:
        """Drop the history up to now, as revision: who has read less must start again."""
        self._changes.clear()
        self.forgotten = revision
        self.changed.send()

    def apply(self, namespace: str, name: str, change: StoreEvent) -> None:
        """Record a change and wake the watchers."""
        items = self._items.setdefault(namespace, {})
        if change.kind == "DELETED":
            del items[name]
            if not items:
                del self._items[namespace]
        else:
            items[name] = change.item
        self._changes.append(change)
        if len(self._changes) > 2 * self._history:
            self._drop(len(self._changes) - self._history)
        self.changed.send()

    def _drop(self, count: int) -> None:
        if count:
            self.forgotten = self._changes[count - 1].revision
            del self._changes[:count]


Key: TypeAlias = tuple[str, str, str]
"""Collection, namespace and name of an object."""


class Owners:
    """Which stored objects name which owner by metadata.ownerReferences."""

    def __init__(self) -> None:
        self._dependents: dict[str, dict[Key, None]] = {}

    def update(self, key: Key, before: Object, after: Object) -> None:
        """Note a change of the metadata of one object; empty where it does not exist."""
        old, new = owner_uids(before), owner_uids(after)
        for uid in old - new:
            dependents = self._dependents[uid]
            del dependents[key]
            if not dependents:
                del self._dependents[uid]
        for uid in new - old:
            self._dependents.setdefault(uid, {})[key] = None

    def dependents(self, uid: str) -> list[Key]:
        """Return the objects that name this owner, in the order in which they did."""
        return list(self._dependents.get(uid, ()))


def owner_uids(metadata: Object) -> set[str]:
    """Return the UIDs of the owners of an object."""
    references = metadata.get("ownerReferences")
    return {reference.get("uid", "") for reference in references} if references else set()


Listener: TypeAlias = Callable[[StoreEvent], None]


class Store:
    """The collections and the one revision that grows with every write."""

    def __init__(self, history: int) -> None:
        self._history = history
        self._collections: dict[str, Collection] = {}
        self._listeners: dict[str, list[Listener]] = {}
        self.owners = Owners()
        # Starting from the time makes a restart look like a compaction: older versions are expired.
        self._first = time.time_ns() // 1_000_000
        self.revision = self._first

    def collection(self, storage: str) -> Collection:
        """Return the collection of that storage name, empty if it is new."""
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(self._history, self._first)
        return found

    def collections(self) -> dict[str, Collection]:
        """Return every collection by storage name."""
        return dict(self._collections)

    def listen(self, storage: str, listener: Listener) -> None:
        """Call *listener* after each change of a collection, before the write is answered."""
        self._listeners.setdefault(storage, []).append(listener)

    def find(self, storage: str, namespace: str, name: str) -> Object | None:
        """Return the current form of an object."""
        item = self.collection(storage).get(namespace, name)
        return item.object if item else None

    def objects(self, storage: str) -> list[Object]:
        """Return all objects of a collection."""
        return [item.object for item in self.collection(storage).list(None)]

    def put(self, storage: str, obj: Object) -> Item:
        """Create or replace an object; its resourceVersion is set here, on a copy."""
        metadata = obj["metadata"]
        previous = self.collection(storage).get(metadata.get("namespace", ""), metadata["name"])
        item = self._version(obj)
        self._apply(storage, StoreEvent("MODIFIED" if previous else "ADDED", item, previous))
        return item

    def remove(self, storage: str, namespace: str, name: str) -> Item:
        """Delete an object for good and return its last version.

        Raises:
            KeyError: It is not there.
        """
        previous = self.collection(storage).get(namespace, name)
        if previous is None:
            raise KeyError(name)
        item = self._version(previous.object)
        self._apply(storage, StoreEvent("DELETED", item, previous))
        return item

    def compact(self, collection: Collection) -> None:
        """Make every resourceVersion of the collection that clients know too old to watch from."""
        self.revision += 1
        collection.forget(self.revision)

    def _apply(self, storage: str, change: StoreEvent) -> None:
        metadata = change.item.object["metadata"]
        space, name = metadata.get("namespace", ""), metadata["name"]
        self.collection(storage).apply(space, name, change)
        before = change.previous.object["metadata"] if change.previous else {}
        self.owners.update(
            (storage, space, name), before, {} if change.kind == "DELETED" else metadata
        )
        for listener in self._listeners.get(storage, ()):
            listener(change)

    def _version(self, obj: Object) -> Item:
        self.revision += 1
        metadata = obj["metadata"] | {"resourceVersion": str(self.revision)}
        return Item(obj | {"metadata": metadata}, self.revision)
