"""Objects of the additional kinds that plugins read: as they come from the API server, and kept.

The gateway does not look into them; it hands them on to the replicas.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import structlog

from moorage.models import ObjectKind, ObjectName, decode_pod, encode

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_log = structlog.get_logger()
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ObjectContent(NamedTuple):
    """An object with what plugins may want of it, as JSON."""

    uid: str
    namespace: str
    name: str
    json: bytes


def decode_object(raw: bytes | msgspec.Raw) -> ObjectContent:
    """Read an object of any kind.

    What changes without meaning anything (its resourceVersion), what only kubectl and the API
    server need (managed fields), and what lists leave out (its kind) is not kept.

    Raises:
        msgspec.DecodeError: It is no object of Kubernetes'.
    """
    obj = _decode(raw)
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise msgspec.ValidationError("an object without metadata.name")
    for key in ("apiVersion", "kind"):
        obj.pop(key, None)
    for key in ("managedFields", "resourceVersion", "selfLink"):
        metadata.pop(key, None)
    if isinstance(annotations := metadata.get("annotations"), dict):
        annotations.pop(LAST_APPLIED, None)
    namespace, uid = str(metadata.get("namespace", "")), str(metadata.get("uid", ""))
    return ObjectContent(uid, namespace, metadata["name"], encode(obj))


def decode_pod_content(raw: bytes | msgspec.Raw) -> ObjectContent:
    """Read a pod; only what scheduling reads of it is kept, as of the others.

    Raises:
        msgspec.DecodeError: It is no pod.
    """
    pod = decode_pod(raw)
    return ObjectContent(pod.uid, pod.namespace, pod.name, encode(pod))


class ObjectTable:
    """The objects by kind and name; a part of the cluster state."""

    def __init__(self, record: Callable[[ObjectName], None]) -> None:
        """Start empty; *record* is called for every change that replicas must see."""
        self._record = record
        self._contents: dict[ObjectKind, dict[ObjectName, bytes]] = {}

    def __iter__(self) -> Iterator[ObjectName]:
        return (name for contents in self._contents.values() for name in contents)

    @property
    def kinds(self) -> list[ObjectKind]:
        """The kinds."""
        return list(self._contents)

    @property
    def counts(self) -> dict[str, int]:
        """How many objects there are of each kind."""
        return {str(kind): len(contents) for kind, contents in self._contents.items()}

    def contents(self, names: Iterable[ObjectName]) -> list[tuple[ObjectName, bytes | None]]:
        """Return objects as JSON; None for those that are gone."""
        return [(name, self._contents.get(name.kind, {}).get(name)) for name in names]

    def open(self, kind: ObjectKind) -> None:
        """Begin with the objects of a kind."""
        self._contents.setdefault(kind, {})

    def close(self, kind: ObjectKind) -> None:
        """Forget all objects of a kind."""
        for name in self._contents.pop(kind, {}):
            self._record(name)

    def put(self, name: ObjectName, content: bytes) -> None:
        """Take over an object; one that reads the same is no change."""
        contents = self._contents[name.kind]
        if contents.get(name) != content:
            contents[name] = content
            self._record(name)

    def drop(self, name: ObjectName) -> None:
        """Forget an object, if it is there."""
        if self._contents.get(name.kind, {}).pop(name, None) is not None:
            self._record(name)


class ObjectSink:
    """What the reflector of an additional kind feeds; keys are UIDs."""

    def __init__(
        self, table: ObjectTable, kind: ObjectKind, *, limit: int, refused: Callable[[], None]
    ) -> None:
        """Put objects of *kind* and up to *limit* bytes into *table*; *refused* counts others."""
        self._table = table
        self._kind = kind
        self._limit = limit
        self._refused = refused
        self._names: dict[str, ObjectName] = {}
        table.open(kind)

    def put(self, obj: ObjectContent) -> None:
        """Take over a new or changed object; of one that is too large, nothing is kept."""
        if len(obj.json) <= self._limit:
            name = self._names[obj.uid] = ObjectName(self._kind, obj.namespace, obj.name)
            self._table.put(name, obj.json)
            return
        self.drop(obj.uid)
        self._refused()
        _log.warning(
            "An object is too large and is left out",
            kind=str(self._kind),
            namespace=obj.namespace,
            name=obj.name,
            bytes=len(obj.json),
            limit=self._limit,
        )

    def drop(self, key: str) -> None:
        """Forget an object by UID."""
        name = self._names.pop(key, None)
        if name is not None:
            self._table.drop(name)
