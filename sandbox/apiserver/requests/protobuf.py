"""Reads the objects that kubectl sends as protobuf, as JSON would have them.

`kubectl create KIND`, `kubectl auth can-i` and `kubectl drain` use Go's typed clients, which write
protobuf and do not fall back to JSON. The tables have the fields that these commands fill in for
the kinds that matter here, with the numbers of the Kubernetes API's .proto files; other fields are
skipped, other kinds need a manifest.
"""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from sandbox.apiserver.errors import bad_request
from sandbox.apiserver.resources.table import Object

_Schema = Mapping[int, tuple[str, Any]]
"""Field number to name and type: str, int, bool, `_TEXTS`, a schema, or a list of one of these."""

_TEXTS: Final = {str: str}
"""A map of texts."""

_META: _Schema = {
    1: ("name", str), 2: ("generateName", str), 3: ("namespace", str), 5: ("uid", str),
    6: ("resourceVersion", str), 11: ("labels", _TEXTS), 12: ("annotations", _TEXTS),
}  # fmt: skip
_DELETE_OPTIONS: _Schema = {
    1: ("gracePeriodSeconds", int),
    2: ("preconditions", {1: ("uid", str), 2: ("resourceVersion", str)}),
    4: ("propagationPolicy", str),
}
_CONTAINER: _Schema = {
    1: ("name", str), 2: ("image", str), 3: ("command", [str]), 4: ("args", [str]),
    6: ("ports", [{1: ("name", str), 3: ("containerPort", int), 4: ("protocol", str)}]),
}  # fmt: skip
_POD: _Schema = {
    2: ("containers", [_CONTAINER]), 3: ("restartPolicy", str), 19: ("schedulerName", str),
}  # fmt: skip
_TEMPLATE: _Schema = {1: ("metadata", _META), 2: ("spec", _POD)}
_DEPLOYMENT: _Schema = {
    1: ("replicas", int), 2: ("selector", {1: ("matchLabels", _TEXTS)}), 3: ("template", _TEMPLATE),
}  # fmt: skip
_JOB: _Schema = {1: ("parallelism", int), 2: ("completions", int), 6: ("template", _TEMPLATE)}

_KINDS: Mapping[str, _Schema] = {
    "Namespace": {1: ("metadata", _META)},
    "SelfSubjectAccessReview": {1: ("metadata", _META)},
    "ConfigMap": {1: ("metadata", _META), 2: ("data", _TEXTS)},
    "Deployment": {1: ("metadata", _META), 2: ("spec", _DEPLOYMENT)},
    "Job": {1: ("metadata", _META), 2: ("spec", _JOB)},
    "PriorityClass": {
        1: ("metadata", _META), 2: ("value", int), 3: ("globalDefault", bool),
        4: ("description", str), 5: ("preemptionPolicy", str),
    },
    "Eviction": {1: ("metadata", _META), 2: ("deleteOptions", _DELETE_OPTIONS)},
    "DeleteOptions": _DELETE_OPTIONS,
}  # fmt: skip

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_ENVELOPE: _Schema = {
    1: ("typeMeta", {1: ("apiVersion", str), 2: ("kind", str)}),
    2: ("raw", bytes),
}


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
                f"{kind.get('kind', '')} in protobuf is not understood here: "
                "write a manifest and use kubectl apply"
            )
        return {**kind, **_message(envelope.get("raw", b""), schema)}
    except (DecodeError, TypeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request("the body of the request is malformed protobuf") from error


def _message(data: Any, schema: _Schema) -> Object:
    if not isinstance(data, bytes):
        raise TypeError("a message is bytes")
    # To the library all fields are unknown: it knows no types of Kubernetes.
    message, result = Empty.FromString(data), Object()
    fields = UnknownFieldSet(message)
    for each in map(fields.__getitem__, range(len(fields))):
        if each.field_number not in schema:
            continue
        name, kind = schema[each.field_number]
        if isinstance(kind, list):
            result.setdefault(name, []).append(_value(each.data, kind[0]))
        elif kind == _TEXTS:
            pair = _message(each.data, {1: ("key", str), 2: ("value", str)})
            result.setdefault(name, {})[pair.get("key", "")] = pair.get("value", "")
        elif (read := _value(each.data, kind)) != "":
            result[name] = read  # Go writes empty strings, where JSON leaves them out
    return result


def _value(data: Any, kind: Any) -> Any:
    if isinstance(kind, Mapping):
        return _message(data, kind)
    if not isinstance(data, int if kind in (int, bool) else bytes):
        raise TypeError("a field has another type on the wire")
    if isinstance(data, bytes):
        return data.decode() if kind is str else data
    return kind(data - (1 << 64) if data >= 1 << 63 else data)
