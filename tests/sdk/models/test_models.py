import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.models import (
    Container,
    LabelSelector,
    Metadata,
    NodeManifest,
    OwnerReference,
    Pod,
    PodSpec,
    Toleration,
    decode_node,
    decode_pod,
    encode,
)
from tools.recordings import recorded_requests, recording_names


def recorded(kind: str) -> Iterator[Any]:
    for recording in recording_names():
        for request in recorded_requests(recording):
            body = json.loads(request.body)
            if kind == "pods" and "Pod" in body:
                yield body["Pod"]
            if kind == "nodes":
                yield from (body.get("Nodes") or {}).get("items", [])


def recorded_pod(name: str) -> Pod:
    objects = (pod for pod in recorded("pods") if pod["metadata"]["name"] == name)
    return decode_pod(json.dumps(next(objects)))


def pod(**fields: object) -> Pod:
    return decode_pod(json.dumps(fields))


def test_recorded_pods_survive_being_written_and_read_again() -> None:
    pods = [decode_pod(json.dumps(content)) for content in recorded("pods")]
    assert len(pods) > 20
    for one in pods:
        assert decode_pod(encode(one)) == one
        assert (one.name, one.uid) != ("", "")
        assert one.spec.containers


def test_recorded_nodes_survive_being_written_and_read_again() -> None:
    nodes = [decode_node(json.dumps(content)) for content in recorded("nodes")]
    assert len(nodes) > 20
    for one in nodes:
        assert decode_node(encode(one)) == one
        assert one.allocatable["cpu"] > 0


def test_a_recorded_pod_shows_everything_that_scheduling_reads() -> None:
    rich = recorded_pod("rich")
    spec = rich.spec
    assert rich.requests["cpu"] > 0
    assert rich.host_ports
    assert spec.tolerations
    assert spec.topology_spread_constraints
    assert spec.affinity is not None
    assert spec.affinity.node_affinity is not None
    assert spec.affinity.node_affinity.required is not None
    assert spec.affinity.node_affinity.required.node_selector_terms
    assert spec.scheduler_name == "rec"
    assert all(container.image for container in spec.containers)


@pytest.mark.parametrize(
    "path",
    [
        *("metadata", "metadata.labels", "metadata.annotations", "metadata.ownerReferences"),
        *("metadata.creationTimestamp", "spec", "spec.affinity", "spec.priority", "spec.overhead"),
        *("spec.tolerations", "spec.nodeSelector", "spec.containers", "spec.initContainers"),
        *("spec.volumes", "spec.resources", "spec.topologySpreadConstraints"),
        *("status", "status.phase"),
    ],
)
def test_null_means_that_a_field_of_a_pod_is_not_set(path: str) -> None:
    content: Any = None
    for name in reversed(path.split(".")):
        content = {name: content}
    assert pod(**content) == Pod()


def test_nulls_are_fine_deep_inside() -> None:
    content = {"containers": [{"resources": {"requests": None, "limits": {"cpu": "1"}}}]}
    assert pod(spec=content).spec.containers[0].resources.limits == {"cpu": "1"}
    listed = pod(spec={"tolerations": [None, {"key": "a"}]})
    assert listed.spec.tolerations == (Toleration(key="a"),)
    term = {
        "podAffinity": None,
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None},
    }
    affinity = pod(spec={"affinity": term}).spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is None


def test_null_means_that_a_field_of_a_node_is_not_set() -> None:
    content = {
        "metadata": {"name": "n1", "labels": None, "creationTimestamp": None},
        "spec": {"taints": None},
        "status": {"images": [{"names": None, "sizeBytes": 5}], "allocatable": None},
    }
    node = decode_node(json.dumps(content))
    assert (node.name, node.metadata.labels, node.spec.taints) == ("n1", {}, ())
    assert node.status.images[0].names == ()
    assert node.allocatable == {}


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"metadata": {"labels": {"a": 1}}}, "$.metadata.labels[...]"),
        ({"spec": {"containers": {}}}, "$.spec.containers"),
        ({"spec": {"containers": [{"resources": {"requests": {"cpu": []}}}]}}, "requests[...]"),
        (
            {"spec": {"tolerations": [{"key": 5}], "nodeSelector": None}},
            "$.spec.tolerations[0].key",
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_an_error_with_its_path(content: object, path: str) -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        decode_pod(json.dumps(content))
    assert path in str(caught.value)


def test_text_that_is_not_json_is_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_node(b'{"metadata": ')


def test_unknown_fields_are_ignored_and_defaults_left_out() -> None:
    one = pod(
        kind="Pod",
        metadata={"name": "a", "labels": {}, "managedFields": [{}], "resourceVersion": "5"},
        spec={"hostname": "a", "nodeName": "", "priority": 1, "tolerations": []},
        status={"podIP": "10.0.0.1"},
    )
    assert encode(one) == (
        b'{"metadata":{"name":"a"},"spec":{"priority":1,"resources":{}},"status":{}}'
    )


def test_equal_pods_are_written_alike_whatever_they_were_read_from() -> None:
    bare = pod(spec={"containers": [{}]})
    wordy = pod(
        metadata={},
        spec={"containers": [{"resources": {"limits": {}}, "ports": []}], "volumes": None},
        status={"phase": ""},
    )
    made = Pod(spec=PodSpec(containers=(Container(),)))
    assert bare == wordy == made
    assert encode(bare) == encode(wordy) == encode(made)


def test_names_of_fields_are_those_of_the_api() -> None:
    port = {"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}
    content = {"spec": {"containers": [{"ports": [port]}], "topologySpreadConstraints": []}}
    one = decode_pod(json.dumps(content))
    assert one.host_ports[0].host_ip == "10.0.0.1"
    assert json.loads(encode(one))["spec"]["containers"][0]["ports"] == [port]


def test_host_ports_come_from_containers_and_sidecars_but_not_from_init_containers() -> None:
    def container(port: int, restart_policy: str = "") -> dict[str, object]:
        return {
            "ports": [{"hostPort": port}, {"containerPort": 1}],
            "restartPolicy": restart_policy,
        }

    one = pod(
        spec={
            "containers": [container(1)],
            "initContainers": [container(2, "Always"), container(3)],
        }
    )
    assert [port.host_port for port in one.host_ports] == [1, 2]


def test_claims_are_those_named_and_those_made_for_the_pod() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "pgdata"}},
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]
    assert pod(metadata={"name": "pg-0"}, spec={"volumes": volumes}).claim_names == (
        "pgdata",
        "pg-0-scratch",
    )


def test_the_owner_is_the_controller() -> None:
    owners = [{"name": "other"}, {"kind": "ReplicaSet", "name": "web-1", "controller": True}]
    one = pod(metadata={"ownerReferences": owners})
    assert one.owner == OwnerReference(kind="ReplicaSet", name="web-1", controller=True)
    assert pod(metadata={"ownerReferences": owners[:1]}).owner is None


def test_a_pod_says_whether_it_has_ended_or_is_being_deleted() -> None:
    assert not pod(status={"phase": "Running"}).is_terminal
    assert pod(status={"phase": "Failed"}).is_terminal
    assert pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}).is_terminating
    assert not pod().is_terminating


def test_a_pod_without_a_namespace_is_in_default() -> None:
    assert pod().namespace == "default"
    assert pod(metadata={"namespace": "team"}).namespace == "team"


def test_models_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Pod().metadata = Metadata()  # type: ignore[misc]


def test_a_selector_that_is_empty_differs_from_one_that_is_absent() -> None:
    constraint = {"topologyKey": "zone", "labelSelector": {}}
    one = pod(spec={"topologySpreadConstraints": [constraint, {"topologyKey": "zone"}]})
    again = decode_pod(encode(one))
    selectors = [c.label_selector for c in again.spec.topology_spread_constraints]
    assert selectors == [LabelSelector(), None]


names = st.text(max_size=12)
quantities = st.sampled_from(["1", "500m", "16Gi"]) | st.integers(0, 9) | st.just(0.5)
maps = st.dictionaries(names, names, max_size=3)
sometimes_null = st.none() | maps
containers = st.fixed_dictionaries(
    {},
    optional={
        "image": names,
        "restartPolicy": st.sampled_from(["", "Always"]),
        "resources": st.fixed_dictionaries(
            {}, optional={"requests": st.dictionaries(names, quantities, max_size=3)}
        ),
        "ports": st.lists(st.fixed_dictionaries({"hostPort": st.integers(0, 65535)}), max_size=2),
        "env": st.lists(st.integers(), max_size=2),
    },
)
pods = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": names, "labels": sometimes_null})},
    optional={
        "spec": st.fixed_dictionaries(
            {"nodeName": names},
            optional={
                "containers": st.lists(containers, max_size=3),
                "initContainers": st.lists(containers, max_size=3),
                "nodeSelector": sometimes_null,
                "priority": st.integers(-(2**31), 2**31 - 1),
                "tolerations": st.lists(
                    st.fixed_dictionaries({"key": names, "operator": names}), max_size=2
                ),
            },
        ),
    },
)


@given(pods)
def test_any_pod_survives_being_written_and_read_again(content: dict[str, Any]) -> None:
    one = decode_pod(json.dumps(content))
    assert decode_pod(encode(one)) == one
    assert one.metadata.labels == (content["metadata"]["labels"] or {})
    assert one.spec.node_name == content.get("spec", {}).get("nodeName", "")


@given(labels=maps, allocatable=st.dictionaries(names, quantities, max_size=3))
def test_any_node_survives_being_written_and_read_again(
    labels: dict[str, str], allocatable: dict[str, object]
) -> None:
    content = {"metadata": {"labels": labels}, "status": {"allocatable": allocatable}}
    node: NodeManifest = decode_node(json.dumps(content))
    assert decode_node(encode(node)) == node
    assert node.metadata.labels == labels
    assert node.status.allocatable == allocatable
