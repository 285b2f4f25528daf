"""The JSON of lists and watches: only what following them needs, objects stay raw."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import msgspec

from moorage_host.kube import (
    UNREADABLE,
    KubeAnswerError,
    KubeClient,
    KubeError,
    KubeStatusError,
    Status,
)
from moorage_host.kube.client import ObjectList

T = TypeVar("T")

DISCOVERY_SECONDS = 10.0

EVENTS = frozenset(("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"))

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Generic[T]):
    """What a reflector follows.

    Attributes:
        path: The collection, such as "/api/v1/nodes".
        key: What names an object: its name, or its uid.
        decode: Reads an object from JSON; raises msgspec.DecodeError for what it cannot read.
        query: More query parameters, such as a fieldSelector.
        optional: Whether a server without this collection counts as one where it is empty.
    """

    path: str
    key: Literal["name", "uid"]
    decode: Callable[[msgspec.Raw], T]
    query: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False


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


class Event(msgspec.Struct, frozen=True):
    """A line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


class _ServedKind(msgspec.Struct, frozen=True):
    name: str


class _Served(msgspec.Struct, frozen=True):
    """The APIResourceList of a group and version."""

    resources: list[_ServedKind]


decode_event = msgspec.json.Decoder(Event).decode
decode_header = msgspec.json.Decoder(Header).decode
decode_bookmark = msgspec.json.Decoder(Bookmark).decode
decode_list = msgspec.json.Decoder(ObjectList).decode
_decode_status = msgspec.json.Decoder(Status).decode
_decode_served = msgspec.json.Decoder(_Served).decode


def error_of(path: str, event: Event) -> KubeStatusError:
    """Return what an ERROR event of a watch says."""
    status: Status = _decode_status(event.object)
    seconds = status.details.retry_after_seconds if status.details else 0
    return KubeStatusError(
        f"watch of {path}",
        status=status.code,
        reason=status.reason,
        message=status.message,
        retry_after=float(seconds) or None,
    )


def unknown_object(event: str, identity: Identity) -> KubeAnswerError:
    """Return what is wrong with an event about an object that was never added."""
    return KubeAnswerError(f"an event {event} of {identity.name[:253]}, which was not there")


def is_expired(error: KubeStatusError) -> bool:
    """Whether the server cannot go on from our resource version, so that only a new list helps."""
    return (
        error.status == 410
        or error.reason in ("Expired", "Gone")
        or "too large resource version" in error.message.lower()
    )


async def is_missing(client: KubeClient, resource: Resource[Any], error: Exception) -> bool:
    """Return whether the server lacks an optional collection.

    Who has no right for it gets 403 first.
    """
    if not resource.optional or not isinstance(error, KubeStatusError):
        return False
    if error.status != 403:
        return error.status == 404
    group = "/".join(resource.path.split("/")[:4])  # /apis/GROUP/VERSION
    try:
        answer = await client.request("GET", group, timeout=DISCOVERY_SECONDS)
    except (KubeError, TimeoutError):
        return False
    if not answer.ok:
        return answer.status == 404
    plural = resource.path.rpartition("/")[2]
    try:
        served: _Served = _decode_served(answer.body)
    except UNREADABLE:
        return False
    return all(each.name != plural for each in served.resources)
