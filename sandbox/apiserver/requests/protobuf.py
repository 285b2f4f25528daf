"""Reads the objects that kubectl sends as protobuf, as JSON would have them.

`kubectl create KIND`, `kubectl auth can-i` and `kubectl drain` use Go's typed clients, which write
protobuf and do not fall back to JSON.
"""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from sandbox.apiserver.errors import bad_request
from sandbox.apiserver.requests.protobuf_kinds import DATA, INT_OR_TEXT, KINDS, TEXTS, Schema
from sandbox.apiserver.resources.resource import Object

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_TYPE_META: Schema = {1: ("apiVersion", str), 2: ("kind", str)}
_ENVELOPE: Schema = {1: ("typeMeta", _TYPE_META), 2: ("raw", bytes)}
_INT_OR_TEXT: Schema = {1: ("type", int), 2: ("number", int), 3: ("text", str)}


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
        schema = KINDS.get(kind.get("kind", ""))
        if schema is None:
            raise bad_request(
                f"{kind.get('kind', '')} in protobuf is not understood here: "
                "write a manifest and use kubectl apply"
            )
        return {**kind, **_message(envelope.get("raw", b""), schema)}
    except (IndexError, ValueError, RecursionError) as error:
        raise bad_request("the body of the request is malformed protobuf") from error


def _message(data: bytes, schema: Schema) -> Object:
    result: Object = {}
    for number, value in _fields(data):
        if number not in schema:
            continue
        name, kind = schema[number]
        if isinstance(kind, list):
            result.setdefault(name, []).append(_value(value, kind[0]))
        elif kind in (TEXTS, DATA):
            pair = _message(_bytes(value), {1: ("key", str), 2: ("value", kind[str])})
            content = pair.get("value", "")
            text = b64encode(content).decode() if isinstance(content, bytes) else content
            result.setdefault(name, {})[pair.get("key", "")] = text
        elif (read := _value(value, kind)) != "":
            result[name] = read  # Go writes empty strings, where JSON leaves them out
    return result


def _value(value: int | bytes, kind: Any) -> Any:
    if kind in (int, bool):
        return kind(_signed(value))
    if kind is bytes:
        return _bytes(value)
    if kind is str:
        return _bytes(value).decode()
    if kind == INT_OR_TEXT:
        either = _message(_bytes(value), _INT_OR_TEXT)
        return either.get("text", "") if either.get("type") else either.get("number", 0)
    return _message(_bytes(value), kind)


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
