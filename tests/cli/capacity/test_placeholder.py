"""What a placeholder takes over from its pod, and what it leaves out."""

from typing import Any

import msgspec
import pytest

from cli.capacity.placeholder import (
    NEW_NODES,
    Placeholder,
    placeholder_manifest,
    read_placeholder,
    status_patch,
)
from moorage.models import decode_pod
from tools.planes.embedded import Object
from tools.planes.objects import pod

OTHER = {"key": "moorage.io/existing", "operator": "DoesNotExist"}
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")


def placeholder(*, labels: dict[str, str] | None = None, owner: str = "", **spec: Any) -> Object:
    """Return the placeholder of a pod."""
    made = pod("web-1", "heated", "2", labels=labels, spec=spec)
    made["metadata"] |= {"uid": "u1"}
    if owner:
        reference = {
            "apiVersion": "v1",
            "kind": owner,
            "name": "web",
            "uid": "o",
            "controller": True,
        }
        made["metadata"] |= {"ownerReferences": [reference]}
    body = msgspec.json.encode(made)
    return dict(
        placeholder_manifest(made, decode_pod(body), autoscaler="karpenter", requirements=[OTHER])
    )


def at(value: Any, *path: str) -> Any:
    for key in path:
        value = value[key]
    return value


def spread(**selector: Any) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }


def test_a_placeholder_is_nobody_s_and_never_runs() -> None:
    made = placeholder()
    metadata, spec = made["metadata"], made["spec"]
    assert (metadata["name"], metadata["namespace"]) == ("capacity-u1", "default")
    assert metadata["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": "u1"}
    ]
    assert spec["schedulerName"] == "moorage-placeholder"
    (container,) = spec["containers"]
    assert container["resources"] == {"requests": {"cpu": "2"}, "limits": {}}
    assert spec["securityContext"]["runAsNonRoot"]
    assert not spec["automountServiceAccountToken"]


@pytest.mark.parametrize(
    ("affinity", "terms"),
    [
        ({}, [{"matchExpressions": [OTHER]}]),
        (
            {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [SSD]}]}}},
            [{"matchExpressions": [SSD, OTHER]}],
        ),
        (
            {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [SSD]}, {}]}}},
            [{"matchExpressions": [SSD, OTHER]}],
        ),
    ],
    ids=["none", "one term", "a term that matches nothing"],
)
def test_each_term_of_its_affinity_keeps_off_nodes_that_exist(
    affinity: Object, terms: list[Object]
) -> None:
    assert at(placeholder(affinity=affinity)["spec"], *TERMS) == terms


@pytest.mark.parametrize(
    ("labels", "owner", "constraints", "kept"),
    [
        ({"app": "web", "team": "a"}, "", [], {}),
        ({"app": "web", "team": "a"}, "", [spread(matchLabels={"app": "web"})], {"app": "web"}),
        ({"app": "web"}, "", [spread(matchLabels={"app": "other"})], {}),
        (
            {"app": "web", "pod-template-hash": "1"},
            "ReplicaSet",
            [spread(matchLabels={"app": "web", "pod-template-hash": "1"})],
            {"app": "web"},
        ),
        ({"app": "web"}, "ReplicationController", [spread(matchLabels={"app": "web"})], {}),
    ],
    ids=["unneeded", "by its own spread", "of others", "a revision", "a controller that adopts"],
)
def test_it_has_only_those_labels_by_which_the_pod_keeps_apart_from_its_like(
    labels: dict[str, str], owner: str, constraints: list[Object], kept: dict[str, str]
) -> None:
    made = placeholder(labels=labels, owner=owner, topologySpreadConstraints=constraints)
    assert made["metadata"]["labels"] == {**kept, "moorage.io/placeholder": "karpenter"}
    assert "pod-template-hash" not in str(made["spec"])


def test_claims_are_taken_over_and_none_is_made() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-1"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "kube-api-access", "projected": {}},
    ]
    assert placeholder(volumes=volumes)["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-1"}},
        {"name": "scratch", "persistentVolumeClaim": {"claimName": "web-1-scratch"}},
    ]


def test_devices_have_limits_and_host_ports_stay() -> None:
    amounts = {"cpu": "1", "nvidia.com/gpu": "2"}
    ports = [{"containerPort": 80, "hostPort": 8080}]
    containers = [{"name": "main", "resources": {"requests": amounts}, "ports": ports}]
    (container,) = placeholder(containers=containers)["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert [each["hostPort"] for each in container["ports"]] == [8080]


def test_what_is_written_into_its_status_is_read_again() -> None:
    made = placeholder()
    shown = Placeholder(
        namespace="default",
        name="capacity-u1",
        uid="c1",
        pod="web-1",
        pod_uid="u1",
        reason="NodeAdded",
        message="node b was added for it",
        created=0.0,
        since=1_800_000_000.0,
        nodes=("a", "b"),
        rejecting=("a",),
    )
    status = status_patch(shown)["status"]
    assert any(each["type"] == NEW_NODES for each in status["conditions"])
    metadata = {**made["metadata"], "uid": "c1"}
    assert read_placeholder({**made, "metadata": metadata, "status": status}) == shown
