"""Reads the objects that kubectl sends as protobuf, as JSON would have them.

`kubectl create KIND`, `kubectl auth can-i` and `kubectl drain` use Go's typed clients, which write
protobuf and do not fall back to JSON. The tables have the fields that these commands fill in, with
the numbers of the Kubernetes API's .proto files; other fields are skipped.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from sandbox.apiserver.errors import bad_request
from sandbox.apiserver.resources.resource import Object

_Schema = Mapping[int, tuple[str, Any]]
"""Field number to name and type: str, int, bool, a schema, a list of one of these, or a marker."""

_TEXTS: Final = {str: str}
"""A map of texts."""
_DATA: Final = {str: bytes}
"""A map of bytes, which JSON has in base64."""
_NUMBER_OR_TEXT: Final = "IntOrString"

_META: _Schema = {
    1: ("name", str), 2: ("generateName", str), 3: ("namespace", str), 5: ("uid", str),
    6: ("resourceVersion", str), 11: ("labels", _TEXTS), 12: ("annotations", _TEXTS),
}  # fmt: skip
_PRECONDITIONS: _Schema = {1: ("uid", str), 2: ("resourceVersion", str)}
_DELETE_OPTIONS: _Schema = {
    1: ("gracePeriodSeconds", int), 2: ("preconditions", _PRECONDITIONS),
    4: ("propagationPolicy", str),
}  # fmt: skip
_REFERENCE: _Schema = {1: ("kind", str), 2: ("namespace", str), 3: ("name", str), 4: ("uid", str)}
_SELECTOR: _Schema = {1: ("matchLabels", _TEXTS)}
_CONTAINER_PORT: _Schema = {1: ("name", str), 3: ("containerPort", int), 4: ("protocol", str)}
_CONTAINER: _Schema = {
    1: ("name", str), 2: ("image", str), 3: ("command", [str]), 4: ("args", [str]),
    6: ("ports", [_CONTAINER_PORT]),
}  # fmt: skip
_POD: _Schema = {
    2: ("containers", [_CONTAINER]),
    3: ("restartPolicy", str),
    19: ("schedulerName", str),
}
_TEMPLATE: _Schema = {1: ("metadata", _META), 2: ("spec", _POD)}
_DEPLOYMENT: _Schema = {
    1: ("replicas", int), 2: ("selector", _SELECTOR), 3: ("template", _TEMPLATE),
}  # fmt: skip
_JOB: _Schema = {1: ("parallelism", int), 2: ("completions", int), 6: ("template", _TEMPLATE)}
_JOB_TEMPLATE: _Schema = {1: ("metadata", _META), 2: ("spec", _JOB)}
_CRON_JOB: _Schema = {1: ("schedule", str), 5: ("jobTemplate", _JOB_TEMPLATE)}
_SERVICE_PORT: _Schema = {
    1: ("name", str), 2: ("protocol", str), 3: ("port", int), 4: ("targetPort", _NUMBER_OR_TEXT),
}  # fmt: skip
_SERVICE: _Schema = {
    1: ("ports", [_SERVICE_PORT]), 2: ("selector", _TEXTS), 3: ("clusterIP", str), 4: ("type", str),
}  # fmt: skip
_BUDGET: _Schema = {
    1: ("minAvailable", _NUMBER_OR_TEXT), 2: ("selector", _SELECTOR),
    3: ("maxUnavailable", _NUMBER_OR_TEXT),
}  # fmt: skip
_RULE: _Schema = {
    1: ("verbs", [str]), 2: ("apiGroups", [str]), 3: ("resources", [str]),
    4: ("resourceNames", [str]), 5: ("nonResourceURLs", [str]),
}  # fmt: skip
_SUBJECT: _Schema = {
    1: ("kind", str), 2: ("apiGroup", str), 3: ("name", str), 4: ("namespace", str)
}  # fmt: skip
_ROLE_REFERENCE: _Schema = {1: ("apiGroup", str), 2: ("kind", str), 3: ("name", str)}
_ROLE: _Schema = {1: ("metadata", _META), 2: ("rules", [_RULE])}
_ROLE_BINDING: _Schema = {
    1: ("metadata", _META), 2: ("subjects", [_SUBJECT]), 3: ("roleRef", _ROLE_REFERENCE)
}  # fmt: skip


def _with_spec(spec: _Schema) -> _Schema:
    return {1: ("metadata", _META), 2: ("spec", spec)}


_KINDS: Mapping[str, _Schema] = {
    "Namespace": {1: ("metadata", _META)},
    "ServiceAccount": {1: ("metadata", _META)},
    "SelfSubjectReview": {1: ("metadata", _META)},
    "SelfSubjectAccessReview": {1: ("metadata", _META)},
    "SelfSubjectRulesReview": {1: ("metadata", _META)},
    "Role": _ROLE,
    "ClusterRole": _ROLE,
    "RoleBinding": _ROLE_BINDING,
    "ClusterRoleBinding": _ROLE_BINDING,
    "ConfigMap": {1: ("metadata", _META), 2: ("data", _TEXTS), 3: ("binaryData", _DATA)},
    "Secret": {1: ("metadata", _META), 2: ("data", _DATA), 3: ("type", str)},
    "Service": _with_spec(_SERVICE),
    "Deployment": _with_spec(_DEPLOYMENT),
    "Job": _with_spec(_JOB),
    "CronJob": _with_spec(_CRON_JOB),
    "PodDisruptionBudget": _with_spec(_BUDGET),
    "PriorityClass": {
        1: ("metadata", _META), 2: ("value", int), 3: ("globalDefault", bool),
        4: ("description", str), 5: ("preemptionPolicy", str),
    },
    "Binding": {1: ("metadata", _META), 2: ("target", _REFERENCE)},
    "Eviction": {1: ("metadata", _META), 2: ("deleteOptions", _DELETE_OPTIONS)},
    "DeleteOptions": _DELETE_OPTIONS,
}  # fmt: skip

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_ENVELOPE: _Schema = {
    1: ("typeMeta", {1: ("apiVersion", str), 2: ("kind", str)}),
    2: ("raw", bytes),
}
_EITHER: _Schema = {1: ("type", int), 2: ("number", int), 3: ("text", str)}


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
        elif kind in (_TEXTS, _DATA):
            pair = _message(each.data, {1: ("key", str), 2: ("value", kind[str])})
            content = pair.get("value", "")
            text = b64encode(content).decode() if isinstance(content, bytes) else content
            result.setdefault(name, {})[pair.get("key", "")] = text
        elif (read := _value(each.data, kind)) != "":
            result[name] = read  # Go writes empty strings, where JSON leaves them out
    return result


def _value(data: Any, kind: Any) -> Any:
    if kind == _NUMBER_OR_TEXT:
        either = _message(data, _EITHER)
        return either.get("text", "") if either.get("type") else either.get("number", 0)
    if isinstance(kind, Mapping):
        return _message(data, kind)
    if not isinstance(data, int if kind in (int, bool) else bytes):
        raise TypeError("a field has another type on the wire")
    if isinstance(data, bytes):
        return data.decode() if kind is str else data
    return kind(data - (1 << 64) if data >= 1 << 63 else data)
