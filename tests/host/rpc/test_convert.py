"""Messages and models, and what reflection clients are shown."""

import json
from typing import Any

import grpc
import msgspec
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from moorage.v1 import replica_pb2
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.convert import (
    from_struct,
    node_from_proto,
    pod_from_proto,
    to_struct,
)
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.standard import CompletePool

POD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "labels": {"app": "web"}},
    "spec": {
        "priority": 7,
        "nodeName": None,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": 1024}}}],
    },
}
NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": 4, "memory": "1Gi"}}}


def as_json(content: object) -> pb.Pod:
    return pb.Pod(json=json.dumps(content).encode())


def as_manifest(content: dict[str, Any]) -> pb.Pod:
    manifest = Struct()
    manifest.update(content)
    return pb.Pod(manifest=manifest)


def with_pod(**parts: Any) -> dict[str, Any]:
    return {**POD, **parts}


def test_a_pod_is_the_same_in_both_forms() -> None:
    (from_json, _), (from_manifest, text) = map(pod_from_proto, (as_json(POD), as_manifest(POD)))
    assert from_json == from_manifest
    assert (from_json.name, from_json.spec.priority) == ("web", 7)
    assert from_json.requests == {"cpu": 500, "memory": 1024}
    assert json.loads(text) == POD


def test_a_node_is_the_same_in_both_forms() -> None:
    manifest = to_struct(NODE)
    from_manifest, _ = node_from_proto(pb.Node(manifest=manifest))
    assert from_manifest == node_from_proto(pb.Node(json=json.dumps(NODE).encode()))[0]
    assert from_manifest.allocatable == {"cpu": 4000, "memory": 2**30}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (pb.Pod(), "pod is missing: give pod.json or pod.manifest"),
        (as_json(with_pod(metadata={"uid": "u"})), "pod.metadata.name is missing"),
        (as_json(with_pod(metadata={"name": "p"})), "pod.metadata.uid is missing"),
        (as_manifest(with_pod(metadata={"name": "p"})), "pod.metadata.uid is missing"),
        (as_json(with_pod(spec={"priority": "high"})), "`pod.spec.priority`"),
        (as_manifest(with_pod(spec={"priority": "high"})), "`pod.spec.priority`"),
        (as_json(with_pod(spec={"overhead": {"cpu": "many"}})), "pod.spec is malformed: 'many'"),
        (as_json([]), "pod is malformed"),
        (pb.Pod(json=b'{"metadata":'), "pod.json is malformed"),
        (pb.Pod(json=b'{"metadata":{"name":"\xff"}}'), "pod.json is malformed"),
        (pb.Pod(json=b"[" * 100_000), "pod.json is malformed"),
        (as_manifest(with_pod(spec={"priority": float("nan")})), "cannot be written as JSON"),
        (pb.Node(json=b"{}"), "node.metadata.name is missing"),
        (
            pb.Node(json=b'{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"x"}}}'),
            "node.status.allocatable is malformed",
        ),
    ],
)
def test_what_is_malformed_is_refused_with_the_path_to_the_mistake(message: Any, text: str) -> None:
    read: Any = node_from_proto if isinstance(message, pb.Node) else pod_from_proto
    with pytest.raises(CallError) as refused:
        read(message)
    assert refused.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert text in refused.value.message


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), plain))
def test_what_goes_into_a_struct_comes_out(content: dict[str, Any]) -> None:
    restored = msgspec.json.encode(from_struct(to_struct(content)), order="sorted")
    assert restored == msgspec.json.encode(content, order="sorted")


FILE = replica_pb2.DESCRIPTOR.name


@pytest.mark.parametrize(
    "symbol",
    [
        "moorage.v1.ReplicaService",
        "moorage.v1.ReplicaService.GetState",
        "moorage.v1.GetStateResponse",
        "moorage.v1.GetStateResponse.node_count",
    ],
)
def test_services_methods_messages_and_fields_are_found(symbol: str) -> None:
    assert CompletePool().FindFileContainingSymbol(symbol).name == FILE


def test_what_is_not_there_is_not_found() -> None:
    for symbol in ("moorage.v1.Nothing", "moorage.v1.ReplicaService.Nothing", ""):
        with pytest.raises(KeyError):
            CompletePool().FindFileContainingSymbol(symbol)


def test_fields_have_the_json_names_that_protobuf_gives_them() -> None:
    files = [CompletePool().FindFileByName(FILE)]
    names = 0
    while files:
        file = files.pop()
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        for message in proto.message_type:
            known = CompletePool().FindMessageTypeByName(f"{proto.package}.{message.name}")
            for field in message.field:
                assert field.json_name == known.fields_by_name[field.name].json_name
                names += "_" in field.name
        files += file.dependencies
    assert names > 10
