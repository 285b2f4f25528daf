"""Turns lists and events of the API server into calls of a sink, without gaps or partial lists.

A watch that broke for too long ends in a new full list. The mirror keeps which version of which
object the sink has, and so finds what was deleted meanwhile.
"""

from collections.abc import Callable, Sequence
from typing import Generic, Literal, Protocol, TypeVar

import msgspec
import structlog

from gateway.cluster.watch.wire import Event, Identity, decode_header

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

Key = Literal["name", "uid"]
Decode = Callable[[msgspec.Raw], T]

_log = structlog.get_logger()


class Sink(Protocol[T_contra]):
    """Holds the objects. No call may wait or raise; several calls in a row belong together."""

    def replace(self, objects: Sequence[T_contra], /) -> None:
        """Take a full list instead of everything so far. Called once, when the first list is in."""

    def upsert(self, obj: T_contra, /) -> None:
        """Take an object that is new or changed."""

    def delete(self, key: str, /) -> None:
        """Forget an object that was given before."""


class Version(msgspec.Struct, frozen=True, gc=False):
    """Which incarnation of an object, in which state; the garbage collector need not look at it."""

    uid: str
    resource_version: str


class Collection(Generic[T]):
    """A full list in the making; an object that the sink has in this version is not decoded."""

    def __init__(self, mirror: "Mirror[T]") -> None:
        self._mirror = mirror
        self.versions: dict[str, Version] = {}
        self.changed: dict[str, T] = {}

    def add(self, raw: msgspec.Raw) -> None:
        """Take an object, or a newer version of it."""
        key, version = self._mirror.identify(raw)
        self.discard(key)
        if self._mirror.versions.get(key) != version:
            obj = self._mirror.decode(raw)
            if obj is None:
                return
            self.changed[key] = obj
        self.versions[key] = version

    def apply(self, event: Event) -> None:
        """Take a change that came before the list was complete."""
        if event.type == "DELETED":
            self.discard(self._mirror.identify(event.object)[0])
        else:
            self.add(event.object)

    def discard(self, key: str) -> None:
        """Forget an object, if it is there."""
        self.versions.pop(key, None)
        self.changed.pop(key, None)


class Mirror(Generic[T]):
    """Feeds one sink.

    Args:
        sink: Who holds the objects.
        decode: Reads an object.
        key: What names an object in `Sink.delete`.
    """

    def __init__(self, sink: Sink[T], *, decode: Decode[T], key: Key) -> None:
        self._sink = sink
        self._decode = decode
        self._key = key
        self._filled = False
        self.versions: dict[str, Version] = {}

    def swap(self, full: Collection[T]) -> None:
        """Bring the sink to the state of a full list, in one go."""
        if not self._filled:
            self._sink.replace(list(full.changed.values()))
            self._filled = True
        else:
            self._hand_over_difference(full)
        self.versions = full.versions

    def apply(self, event: Event) -> str:
        """Hand a change to the sink; return the resource version that the watch has reached."""
        key, version = self.identify(event.object)
        known = self.versions.get(key)
        if known and (event.type == "DELETED" or known.uid != version.uid):
            del self.versions[key]
            self._sink.delete(key)
        if event.type != "DELETED" and (obj := self.decode(event.object)) is not None:
            self.versions[key] = version
            self._sink.upsert(obj)
        return version.resource_version

    def identify(self, raw: msgspec.Raw) -> tuple[str, Version]:
        """Return the key and the version of an object."""
        identity: Identity = decode_header(raw).metadata
        key = identity.name if self._key == "name" else identity.uid
        return key, Version(identity.uid, identity.resource_version)

    def decode(self, raw: msgspec.Raw) -> T | None:
        """Read an object; one that cannot be read is left out, so that the others go on."""
        try:
            return self._decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            name = decode_header(raw).metadata.name
            _log.exception("An object cannot be read and is left out", name=name, error=str(error))
            return None

    def _hand_over_difference(self, full: Collection[T]) -> None:
        for key, version in self.versions.items():
            now = full.versions.get(key)
            if now is None or now.uid != version.uid:
                self._sink.delete(key)
        for obj in full.changed.values():
            self._sink.upsert(obj)
