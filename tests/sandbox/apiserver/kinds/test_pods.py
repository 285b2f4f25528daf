"""What the server adds to pods, and which pods it refuses."""

from typing import Any

import pytest

from tests.sandbox.apiserver.support import NODES, PODS, Http, node, pod

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


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
