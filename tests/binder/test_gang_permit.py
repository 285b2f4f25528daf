"""GangPermit binds groups whole or not at all."""

from typing import Any

from moorage import Allow, Binding, Nodes, Pod, Refusal, Wait
from moorage.groups import POD_GROUP, POD_GROUPS, PODS, PODS_OF_POD_GROUPS
from moorage.testing import make_binding, make_node, make_nodes, make_pod, run_permit
from services.binder.plugins.gang_permit import GangPermit


def cluster(*manifests: dict[str, Any], min_member: int = 0) -> Nodes:
    group = {"metadata": {"namespace": "default", "name": "a", "uid": "a"}}
    given = [{**group, "spec": {"minMember": min_member}}] if min_member else []
    kind = PODS_OF_POD_GROUPS if min_member else PODS
    objects = {PODS: [], PODS_OF_POD_GROUPS: [], POD_GROUPS: given, kind: manifests}
    return make_nodes(make_node("n1"), objects=objects)


def labels(size: str) -> dict[str, str]:
    return {"moorage.io/group": "a", "moorage.io/group-size": size}


def manifest(name: str, node: str = "", **told: str) -> dict[str, Any]:
    """Return a pod as the API server has it."""
    uid = make_pod(name).uid
    metadata = {"namespace": "default", "name": name, "uid": uid, "labels": told or labels("2")}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"name": "c"}]}}


def binding(name: str, nodes: Nodes, size: str = "2", **told: str) -> Binding:
    pod: Pod = make_pod(name, labels=told or labels(size))
    return make_binding(pod, "n1", nodes=nodes)


def test_a_group_goes_on_once_enough_of_it_have_come() -> None:
    nodes = cluster(manifest("x"), manifest("y"))
    first, second = binding("x", nodes), binding("y", nodes)
    assert run_permit(GangPermit(), first) == Wait(2.0, "2 pods of group default/a")
    assert run_permit(GangPermit(), second, first) == Allow()


def test_pods_wait_for_half_as_long_while_the_oldest_one_of_the_group_is_missing() -> None:
    nodes = cluster(manifest("x"), manifest("y"))
    assert run_permit(GangPermit(), binding("y", nodes)) == Wait(1.0, "2 pods of group default/a")


def test_pods_that_are_bound_count_and_pods_that_only_hold_a_node_do_not() -> None:
    bound, held = cluster(manifest("x", "n1")), cluster(manifest("x"))
    assert run_permit(GangPermit(), binding("y", bound)) == Allow()
    assert isinstance(run_permit(GangPermit(), binding("y", held)), Wait)


def test_a_pod_group_says_how_many_are_enough() -> None:
    told = {POD_GROUP: "a"}
    nodes = cluster(manifest("x", **told), manifest("y", **told), min_member=2)
    first, second = binding("x", nodes, **told), binding("y", nodes, **told)
    assert isinstance(run_permit(GangPermit(), first), Wait)
    assert run_permit(GangPermit(), second, first) == Allow()


def test_a_group_that_contradicts_itself_is_refused() -> None:
    nodes = cluster(manifest("x", **labels("2")), manifest("y", **labels("3")))
    refused = run_permit(GangPermit(), binding("x", nodes))
    assert refused == Refusal("pods of the group say different sizes")


def test_other_pods_are_bound_at_once() -> None:
    alone = make_binding(make_pod("z"), "n1", nodes=cluster())
    assert run_permit(GangPermit(), alone) == Allow()
