import json
from typing import Any

import msgspec
import pytest

from moorage.models import (
    Container,
    LabelSelector,
    OwnerReference,
    Pod,
    PodSpec,
    Toleration,
    decode_node,
    decode_pod,
    encode,
)


def pod(**fields: object) -> Pod:
    return decode_pod(json.dumps(fields))


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


def test_a_selector_that_is_empty_differs_from_one_that_is_absent() -> None:
    constraint = {"topologyKey": "zone", "labelSelector": {}}
    one = pod(spec={"topologySpreadConstraints": [constraint, {"topologyKey": "zone"}]})
    again = decode_pod(encode(one))
    selectors = [c.label_selector for c in again.spec.topology_spread_constraints]
    assert selectors == [LabelSelector(), None]
