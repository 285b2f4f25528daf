"""The JSON of lists and watches: only what following them needs, objects stay raw."""

from typing import Any

import msgspec

from moorage_host.kube import KubeStatusError, Status

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Identity(msgspec.Struct, frozen=True, rename="camel"):
    """Which version of which object."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""


class Header(msgspec.Struct, frozen=True):
    """The front of any object."""

    metadata: Identity = Identity()


class BookmarkIdentity(msgspec.Struct, frozen=True, rename="camel"):
    """How far a watch has come."""

    resource_version: str = ""
    annotations: dict[str, str] = {}


class Bookmark(msgspec.Struct, frozen=True):
    """The object of a BOOKMARK event."""

    metadata: BookmarkIdentity = BookmarkIdentity()

    @property
    def ends_initial_events(self) -> bool:
        """Whether everything that existed when the watch began has been sent."""
        return self.metadata.annotations.get(INITIAL_EVENTS_END) == "true"


class Event(msgspec.Struct, frozen=True):
    """A line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


class ListIdentity(msgspec.Struct, frozen=True, rename="camel"):
    """How far a list is true, and where its next page is."""

    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct, frozen=True):
    """A list, or a page of it."""

    metadata: ListIdentity = ListIdentity()
    items: list[msgspec.Raw] | None = None


def _decoder(kind: type[Any]) -> Any:
    return msgspec.json.Decoder(kind).decode


decode_event = _decoder(Event)
decode_header = _decoder(Header)
decode_bookmark = _decoder(Bookmark)
decode_list = _decoder(ObjectList)
_decode_status = _decoder(Status)


def error_of(what: str, event: Event) -> KubeStatusError:
    """Return the error in an ERROR event."""
    status: Status = _decode_status(event.object)
    seconds = status.details.retry_after_seconds if status.details else 0
    return KubeStatusError(
        what,
        status=status.code,
        reason=status.reason,
        message=status.message,
        retry_after=float(seconds) or None,
    )


def is_expired(error: KubeStatusError) -> bool:
    """Whether the server cannot go on from our resource version, so that only a new list helps."""
    return (
        error.status == 410
        or error.reason in ("Expired", "Gone")
        or "too large resource version" in error.message.lower()
    )
