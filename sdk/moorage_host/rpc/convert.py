"""Turns messages into models and back, so that servicers need not.

A pod or node comes as JSON text from the gateway and as a `Struct` from a person with grpcurl; both
become the same model and the same JSON. What is wrong with it is refused with its path.
"""

from collections.abc import Mapping
from typing import Any

import grpc
import msgspec
from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct

from moorage.models import (
    NodeManifest,
    ObjectKind,
    ObjectName,
    Pod,
    decode_node,
    decode_passing_pod,
    freeze_pod,
)
from moorage.plugin.normalization import Normalization
from moorage.plugin.values import Scope
from moorage.units.quantity import QuantityError
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.errors import CallError

_NORMALIZATIONS: Mapping[Normalization, pb.Normalization.ValueType] = {
    Normalization.NONE: pb.NORMALIZATION_NONE,
    Normalization.MAXIMUM: pb.NORMALIZATION_MAXIMUM,
    Normalization.REVERSED_MAXIMUM: pb.NORMALIZATION_REVERSED_MAXIMUM,
}

_SCOPES: Mapping[Scope, pb.Scope.ValueType] = {
    Scope.NODE: pb.SCOPE_NODE,
    Scope.MANIFESTS: pb.SCOPE_MANIFESTS,
    Scope.CLUSTER: pb.SCOPE_CLUSTER,
    Scope.ANYTHING: pb.SCOPE_ANYTHING,
}


def pod_from_proto(message: pb.Pod) -> tuple[Pod, bytes]:
    """Return the pod and its JSON.

    Raises:
        CallError: INVALID_ARGUMENT: it is missing, malformed, or has no name or no uid.
    """
    text = message.json or _json_of(message, "pod")
    try:
        pod = freeze_pod(decode_passing_pod(text))
        pod.requests  # noqa: B018 - models keep what they read
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, QuantityError) as error:
        raise _malformed(error, "pod", "pod.spec") from error
    if not pod.metadata.name:
        raise _invalid("pod.metadata.name is missing")
    if not pod.metadata.uid:
        raise _invalid("pod.metadata.uid is missing")
    return pod, text


def node_from_proto(message: pb.Node) -> tuple[NodeManifest, bytes]:
    """Return the node and its JSON.

    Raises:
        CallError: INVALID_ARGUMENT: it is missing, malformed, or has no name.
    """
    text = message.json or _json_of(message, "node")
    try:
        node = decode_node(text)
        node.allocatable  # noqa: B018 - models keep what they read
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, QuantityError) as error:
        raise _malformed(error, "node", "node.status.allocatable") from error
    if not node.metadata.name:
        raise _invalid("node.metadata.name is missing")
    return node, text


def kind_from_proto(message: pb.ObjectKind) -> ObjectKind:
    """Return an additional kind of objects.

    Raises:
        ValueError: It is not called as kinds are.
    """
    return ObjectKind(
        message.api_version,
        message.plural,
        namespace=message.namespace,
        label_selector=message.label_selector,
        field_selector=message.field_selector,
        optional=message.optional,
    )


def normalization_from_proto(message: pb.Normalization.ValueType) -> Normalization | None:
    """Return how scores become 0..100; None if only the plugin's own code knows."""
    return next((how for how, value in _NORMALIZATIONS.items() if value == message), None)


def normalization_to_proto(how: Normalization | None) -> pb.Normalization.ValueType:
    """Put on the wire how scores become 0..100."""
    return pb.NORMALIZATION_UNSPECIFIED if how is None else _NORMALIZATIONS[how]


def scope_from_proto(message: pb.Scope.ValueType) -> Scope:
    """Return what a plugin depends on; an unspecified or unknown scope is the widest."""
    return next((scope for scope, value in _SCOPES.items() if value == message), Scope.ANYTHING)


def scope_to_proto(scope: Scope) -> pb.Scope.ValueType:
    """Put on the wire what a plugin depends on."""
    return _SCOPES[scope]


def kind_to_proto(kind: ObjectKind) -> pb.ObjectKind:
    """Put an additional kind of objects on the wire."""
    return pb.ObjectKind(
        api_version=kind.api_version,
        plural=kind.plural,
        namespace=kind.namespace,
        label_selector=kind.label_selector,
        field_selector=kind.field_selector,
        optional=kind.optional,
    )


def object_name_from_proto(message: pb.ObjectReference) -> ObjectName:
    """Return which object of an additional kind is meant."""
    return ObjectName(kind_from_proto(message.kind), message.namespace, message.name)


def object_name_to_proto(name: ObjectName) -> pb.ObjectReference:
    """Put on the wire which object of an additional kind is meant."""
    return pb.ObjectReference(
        kind=kind_to_proto(name.kind), namespace=name.namespace, name=name.name
    )


def to_struct(content: object) -> Struct:
    """Return a model, or anything else that is an object in JSON, as a `Struct`."""
    return json_format.Parse(msgspec.json.encode(content), Struct())


def from_struct(struct: Struct) -> dict[str, Any]:
    """Return dicts, lists and scalars; whole numbers as int, since `Struct` knows only floats.

    Raises:
        CallError: INVALID_ARGUMENT: a value is missing or is not a finite number.
    """
    try:
        content = json_format.MessageToDict(struct)
    except (json_format.SerializeToJsonError, ValueError) as error:
        raise _invalid(f"a value cannot be written as JSON: {error}") from error
    return {key: _with_whole_numbers(value) for key, value in content.items()}


def to_duration(seconds: float) -> Duration:
    """Return a number of seconds as a `Duration`."""
    duration = Duration()
    set_duration(duration, seconds)
    return duration


def set_duration(duration: Duration, seconds: float) -> None:
    """Set a `Duration` to a number of seconds: what a message has already need not be copied."""
    duration.seconds, duration.nanos = divmod(round(seconds * 1e9), 1_000_000_000)


def from_duration(duration: Duration) -> float:
    """Return a `Duration` in seconds."""
    return duration.seconds + duration.nanos / 1e9


def _json_of(message: pb.Pod | pb.Node, path: str) -> bytes:
    source = message.WhichOneof("source")
    if source is None:
        raise _invalid(f"{path} is missing: give {path}.json or {path}.manifest")
    if source == "json":
        return message.json
    return msgspec.json.encode(from_struct(message.manifest))


def _malformed(error: Exception, path: str, quantities: str) -> CallError:
    """Return the caller's error for an object at *path* that cannot be read."""
    if isinstance(error, QuantityError):
        return _invalid(f"{quantities} is malformed: {error}")
    if isinstance(error, msgspec.ValidationError):
        return _invalid(f"{path} is malformed: {str(error).replace('`$', f'`{path}')}")
    return _invalid(f"{path}.json is malformed: {error}")


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_whole_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _invalid(message: str) -> CallError:
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, message)
