"""Reads the few objects that kubectl sends as protobuf, whatever the server prefers.

`kubectl create namespace`, `kubectl create priorityclass`, `kubectl auth can-i` and `kubectl drain`
use Go's typed clients, which write protobuf and do not fall back to JSON. Field numbers are those
of the Kubernetes API's .proto files; fields that are not listed are skipped.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.apiserver.errors import bad_request
from sandbox.apiserver.resources.resource import Object

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

_Schema = Mapping[int, tuple[str, Any]]
"""Field number to name and type: str, int, bool, a schema, or dict for a map of strings."""

_META: _Schema = {
    1: ("name", str), 2: ("generateName", str), 3: ("namespace", str), 5: ("uid", str),
    6: ("resourceVersion", str), 11: ("labels", dict), 12: ("annotations", dict),
}  # fmt: skip
_PRECONDITIONS: _Schema = {1: ("uid", str), 2: ("resourceVersion", str)}
_DELETE_OPTIONS: _Schema = {
    1: ("gracePeriodSeconds", int), 2: ("preconditions", _PRECONDITIONS),
    4: ("propagationPolicy", str),
}  # fmt: skip
_REFERENCE: _Schema = {1: ("kind", str), 2: ("namespace", str), 3: ("name", str), 4: ("uid", str)}
_KINDS: Mapping[str, _Schema] = {
    "Namespace": {1: ("metadata", _META)},
    "PriorityClass": {
        1: ("metadata", _META), 2: ("value", int), 3: ("globalDefault", bool),
        4: ("description", str), 5: ("preemptionPolicy", str),
    },
    "SelfSubjectAccessReview": {1: ("metadata", _META)},
    "Binding": {1: ("metadata", _META), 2: ("target", _REFERENCE)},
    "Eviction": {1: ("metadata", _META), 2: ("deleteOptions", _DELETE_OPTIONS)},
    "DeleteOptions": _DELETE_OPTIONS,
}  # fmt: skip
_TYPE_META: _Schema = {1: ("apiVersion", str), 2: ("kind", str)}
_ENVELOPE: _Schema = {1: ("typeMeta", _TYPE_META), 2: ("raw", bytes)}


def decode_protobuf(body: bytes) -> Object:
    """Read an object in Kubernetes' envelope for protobuf.

    Raises:
        StatusError: 400, it is malformed or of a kind that must be sent as JSON.
    """
    if not body.startswith(_MAGIC):
        raise bad_request("the body of the request is not Kubernetes protobuf")
    try:
        envelope = _message(body[len(_MAGIC) :], _ENVELOPE)
        kind = envelope.get("typeMeta", {})
        schema = _KINDS.get(kind.get("kind", ""))
        if schema is None:
            raise bad_request(
                f"a {kind.get('kind', '')} in protobuf is not understood here: send JSON"
            )
        return {**kind, **_message(envelope.get("raw", b""), schema)}
    except (IndexError, ValueError, RecursionError) as error:
        raise bad_request("the body of the request is malformed protobuf") from error


def _message(data: bytes, schema: _Schema) -> Object:
    result: Object = {}
    for number, value in _fields(data):
        if number not in schema:
            continue
        name, kind = schema[number]
        if kind is dict:
            pair = _message(_bytes(value), {1: ("key", str), 2: ("value", str)})
            result.setdefault(name, {})[pair.get("key", "")] = pair.get("value", "")
        elif kind in (int, bool):
            result[name] = kind(_signed(value))
        elif kind is bytes:
            result[name] = _bytes(value)
        elif kind is not str:
            result[name] = _message(_bytes(value), kind)
        elif text := _bytes(value).decode():
            result[name] = text  # Go writes empty strings, where JSON leaves them out
    return result


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        wire = tag & 7
        if wire == 0:
            value, place = _varint(data, place)
            yield tag >> 3, value
        elif wire == 2:
            length, place = _varint(data, place)
            if place + length > len(data):
                raise IndexError(place)
            yield tag >> 3, data[place : place + length]
            place += length
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            raise ValueError(wire)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError(place)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError(value)  # noqa: TRY004 - one kind of error for all malformed input
    return value


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError(value)  # noqa: TRY004
    return value - (1 << 64) if value >= 1 << 63 else value
