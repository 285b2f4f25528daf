"""What the server adds to pods, and which pods it refuses."""

from typing import Any

import pytest

from tests.sandbox.apiserver.support import NODES, PODS, Http, node, pod

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def container(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "main", "image": "web", **fields}]


async def test_a_new_pod_is_pending_for_the_default_scheduler(http: Http) -> None:
    created = await http.create(PODS, pod() | {"status": {"phase": "Running"}})
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    expected = {
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert expected.items() <= created["spec"].items()


async def test_requests_default_to_limits(http: Http) -> None:
    resources = {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"memory": "512Mi"}}
    created = await http.create(PODS, pod(containers=container(resources=resources)))
    written = created["spec"]["containers"][0]["resources"]
    assert written["requests"] == {"cpu": "1", "memory": "512Mi"}
    assert created["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1m"}}, "Burstable"),
    ],
)
async def test_quality_of_service_follows_the_resources(
    http: Http, resources: dict[str, Any], expected: str
) -> None:
    created = await http.create(PODS, pod(containers=container(resources=resources)))
    assert created["status"]["qosClass"] == expected


async def test_pods_tolerate_brief_outages_of_their_node(http: Http) -> None:
    mine = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 5}
    created = await http.create(PODS, pod(tolerations=[mine]))
    kept, added = created["spec"]["tolerations"]
    assert kept == mine
    assert added == {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }


async def test_priority_comes_from_the_priority_class(http: Http) -> None:
    await http.create(
        CLASSES, {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"}
    )
    spec = (await http.create(PODS, pod(priorityClassName="high")))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (100, "Never")


async def test_the_global_default_class_is_for_pods_without_one(http: Http) -> None:
    await http.create(CLASSES, {"metadata": {"name": "low"}, "value": 5, "globalDefault": True})
    spec = (await http.create(PODS, pod()))["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (5, "low")


async def test_a_pod_cannot_choose_its_priority(http: Http) -> None:
    missing = await http.send("POST", PODS, pod(priorityClassName="none"))
    assert (missing.code, missing.body["reason"]) == (403, "Forbidden")
    assert missing.message == ('pods "web" is forbidden: no PriorityClass with name none was found')
    own = await http.send("POST", PODS, pod(priority=7))
    assert own.code == 403
    assert "the integer value of priority (7) must not be provided" in own.message


async def test_a_gated_pod_says_so(http: Http) -> None:
    created = await http.create(PODS, pod(schedulingGates=[{"name": "example.com/wait"}]))
    condition = created["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")


async def test_a_pod_without_containers_is_invalid_with_the_field(http: Http) -> None:
    reply = await http.send("POST", PODS, {"metadata": {"name": "web"}, "spec": {}})
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")
    assert reply.message == 'Pod "web" is invalid: spec.containers: Required value'
    assert reply.body["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}
    ]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": container(image="")}, "spec.containers[0].image"),
        ({"containers": container(name="")}, "spec.containers[0].name"),
        ({"containers": container(name="Main_1")}, "spec.containers[0].name"),
        ({"containers": container() + container()}, "spec.containers[1].name"),
        ({"initContainers": [{"name": "i"}]}, "spec.initContainers[0].image"),
        (
            {"containers": container(resources={"limits": {"cpu": "lots"}})},
            "spec.containers[0].resources.limits[cpu]",
        ),
        (
            {"containers": container(resources={"requests": {"memory": "-1"}})},
            "spec.containers[0].resources.requests[memory]",
        ),
        ({"nodeName": "n1", "schedulingGates": [{"name": "a"}]}, "spec.nodeName"),
    ],
)
async def test_invalid_pods_are_refused_with_the_field(
    http: Http, spec: dict[str, Any], field: str
) -> None:
    reply = await http.send("POST", PODS, pod(**spec))
    assert reply.code == 422, reply.text
    assert field in [cause["field"] for cause in reply.body["details"]["causes"]]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({}, "metadata.name"),
        ({"name": "Web"}, "metadata.name"),
        ({"name": "-web"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"name": "a", "labels": {"-a": ""}}, "metadata.labels"),
        ({"name": "a", "labels": {"A/B/c": ""}}, "metadata.labels"),
        ({"name": "a", "labels": {"a": "not ok"}}, "metadata.labels"),
        ({"name": "a", "labels": {"a": "x" * 64}}, "metadata.labels"),
        ({"name": "a", "annotations": {"a b": ""}}, "metadata.annotations"),
        ({"name": "a", "finalizers": ["a b"]}, "metadata.finalizers"),
    ],
)
async def test_metadata_is_checked(http: Http, metadata: dict[str, Any], field: str) -> None:
    reply = await http.send("POST", PODS, pod() | {"metadata": metadata})
    assert reply.code == 422, reply.text
    assert [cause["field"] for cause in reply.body["details"]["causes"]] == [field]


async def test_the_spec_of_a_pod_is_fixed_but_for_a_few_fields(http: Http) -> None:
    created = await http.create(PODS, pod())
    for change in ({"nodeName": "n1"}, {"nodeSelector": {"a": "b"}}, {"hostNetwork": True}):
        reply = await http.send("PUT", f"{PODS}/web", created | {"spec": created["spec"] | change})
        assert reply.code == 422
        assert reply.body["details"]["causes"][0]["field"] == "spec"
    changed = created["spec"] | {"containers": [created["spec"]["containers"][0] | {"image": "x"}]}
    assert (await http.send("PUT", f"{PODS}/web", created | {"spec": changed})).code == 200


async def test_gates_can_be_lifted_but_not_added(http: Http) -> None:
    created = await http.create(PODS, pod(schedulingGates=[{"name": "a"}]))
    more = created["spec"] | {"schedulingGates": [{"name": "a"}, {"name": "b"}]}
    assert (await http.send("PUT", f"{PODS}/web", created | {"spec": more})).code == 422
    fewer = created["spec"] | {"schedulingGates": []}
    assert (await http.send("PUT", f"{PODS}/web", created | {"spec": fewer})).code == 200


async def test_a_new_node_is_schedulable_and_keeps_its_status(http: Http) -> None:
    created = await http.create(NODES, node())
    assert "taints" not in created["spec"]
    assert created["status"]["allocatable"] == created["status"]["capacity"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"spec": {"taints": [{"key": "a", "effect": "Never"}]}}, "spec.taints[0].effect"),
        ({"spec": {"taints": [{"effect": "NoSchedule"}]}}, "spec.taints[0].key"),
        ({"status": {"capacity": {"cpu": "lots"}}}, "status.capacity[cpu]"),
    ],
)
async def test_invalid_nodes_are_refused_with_the_field(
    http: Http, change: dict[str, Any], field: str
) -> None:
    reply = await http.send("POST", NODES, node() | change)
    assert reply.code == 422
    assert field in [cause["field"] for cause in reply.body["details"]["causes"]]
