"""Pods of StatefulSets and their zones: Cockroach Labs' own examples, and what they left out."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from moorage import PERSISTENT_VOLUMES, STATEFUL_SETS, PluginFailedError, Pod, Rejection
from moorage.models import NodeManifest, OwnerReference
from moorage.testing import make_node, make_nodes, make_pod, run_filter
from services.filter.plugins.stateful_set_zone import StatefulSetZone, arrange

ZONE = "topology.kubernetes.io/zone"
NO_ZONE = Rejection("node(s) have no zone")
OTHER = Rejection("node(s) are not in the zone of the StatefulSet's pod", cured_by="capacity")

Manifest = dict[str, Any]


@pytest.mark.parametrize(
    ("nodes", "volumes", "order"),
    [
        pytest.param("A1 B1 C1", {"A": {0}, "B": {1}, "C": {2}}, "A B C", id="all in place"),
        pytest.param("A1 B1 C1", {"A": {0}, "C": {1}}, "A C B", id="C comes before B"),
        pytest.param("A2 B2 C2", {"A": {0, 1}, "B": {2, 4}, "C": {3, 5}}, "C A B", id="the lowest"),
        pytest.param("A3 B1 C1", {"A": {0, 1, 2}}, "A B C", id="all in the largest"),
        pytest.param("B1 C1 D1", {"B": {2}, "D": {1}}, "C D B", id="none for the first"),
        pytest.param("A1 B2 C1", {}, "B A C", id="the largest first"),
        pytest.param("A1 B2 C2", {}, "B C A", id="two largest"),
        pytest.param(
            "A3 B3 C3", {"A": {0, 5, 8}, "B": {1, 4, 7}, "C": {2, 3, 6}}, "A B C", id="nine pods"
        ),
        pytest.param("", {}, "", id="no zones"),
        pytest.param("A1 B1", {"Z": {0}}, "A B", id="a zone without nodes has no place"),
        pytest.param("A1 B1", {"B": {4}}, "B A", id="ordinals above the number of zones"),
    ],
)
def test_zones_are_arranged_by_size_and_volumes(
    nodes: str, volumes: Mapping[str, set[int]], order: str
) -> None:
    sizes = {zone[0]: int(zone[1:]) for zone in nodes.split()}
    assert arrange(sizes, volumes) == order.split()


NODES = [make_node(f"n{zone}", labels={ZONE: zone}) for zone in "abc"]


def stateful_set(name: str = "db", *templates: str, namespace: str = "default") -> Manifest:
    claims = [{"metadata": {"name": t, "creationTimestamp": None}} for t in templates or ("data",)]
    metadata = {"name": name, "namespace": namespace}
    return {"metadata": metadata, "spec": {"volumeClaimTemplates": claims}}


def volume(
    claim: str, zone: str, *, namespace: str = "default", phase: str = "Bound", **spec: Any
) -> Manifest:
    labels = {ZONE: zone} if zone else {}
    metadata = {"name": f"pv-{namespace}-{claim}", "labels": labels}
    reference = {"claimRef": {"namespace": namespace, "name": claim}}
    return {"metadata": metadata, "spec": {**reference, **spec}, "status": {"phase": phase}}


def member(name: str, owner: str = "db", namespace: str = "default") -> Pod:
    return make_pod(
        name,
        namespace=namespace,
        labels={"statefulset.kubernetes.io/pod-name": name},
        owner=OwnerReference(kind="StatefulSet", name=owner, uid="u"),
    )


def verdicts(
    pod: Pod,
    *volumes: Manifest,
    sets: Sequence[Manifest] = (),
    nodes: Sequence[NodeManifest] = (),
    plugin: StatefulSetZone | None = None,
) -> dict[str, Rejection | None]:
    objects = {STATEFUL_SETS: sets or [stateful_set()], PERSISTENT_VOLUMES: volumes}
    return run_filter(plugin or StatefulSetZone(), pod, *(nodes or NODES), objects=objects)


def open_to(pod: Pod, *volumes: Manifest, **more: Any) -> str:
    return " ".join(name for name, reason in verdicts(pod, *volumes, **more).items() if not reason)


def test_pods_take_the_zones_in_turn() -> None:
    assert [open_to(member(f"db-{i}")) for i in range(4)] == ["na", "nb", "nc", "na"]
    assert verdicts(member("db-1")) == {"na": OTHER, "nb": None, "nc": OTHER}


IN_C: Manifest = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["c"]}]}
BY_AFFINITY: Manifest = {"nodeAffinity": {"required": {"nodeSelectorTerms": [IN_C]}}}


@pytest.mark.parametrize(
    ("pod", "volumes", "nodes"),
    [
        pytest.param(
            "db-3",
            [volume("data-db-0", "a"), volume("data-db-1", "b"), volume("data-db-3", "b")],
            "na nb",
            id="its turn, and where its volume is",
        ),
        pytest.param("db-0", [volume("data-db-0", "c")], "nc", id="volumes say where it begins"),
        pytest.param("db-2", [volume("data-db-0", "c")], "na", id="and where it goes on"),
        pytest.param("db-0", [volume("data-db-0", "", **BY_AFFINITY)], "nc", id="by affinity"),
        pytest.param("db-4", [volume("data-db-4", "a__c")], "na nc", id="a regional disk"),
        pytest.param("db-0", [volume("logs-db-0", "b")], "nb", id="each of several templates"),
    ],
)
def test_pods_follow_volumes(pod: str, volumes: list[Manifest], nodes: str) -> None:
    sets = [stateful_set("db", "data", "logs")]
    assert open_to(member(pod), *volumes, sets=sets) == nodes


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("db-1"), id="nobody's"),
        pytest.param(
            make_pod("web-1", owner=OwnerReference(kind="ReplicaSet", name="web")),
            id="a ReplicaSet's",
        ),
        pytest.param(
            make_pod("db-1", labels={"statefulset.kubernetes.io/pod-name": "db-1"}),
            id="no owner, only the label",
        ),
        pytest.param(member("db-one"), id="no ordinal"),
        pytest.param(member("db-"), id="nothing after the dash"),
        pytest.param(member("db-²"), id="no decimal"),
    ],
)
def test_other_pods_may_run_anywhere(pod: Pod) -> None:
    bare = make_node("bare")
    assert set(verdicts(pod, nodes=[*NODES, bare]).values()) == {None}


@pytest.mark.parametrize(
    ("other", "id_"),
    [
        (volume("data-db-0", "c", namespace="other"), "another namespace"),
        (volume("data-db-0", "c", phase="Released"), "no longer in use"),
        (volume("data-db-east-0", "c"), "of a StatefulSet whose name begins alike"),
        (volume("data-db-0-copy", "c"), "no number at the end"),
        (volume("logs-db-0", "c"), "of no template"),
        (volume("data-db-0", ""), "in no zone"),
        ({"metadata": {"name": "free", "labels": {ZONE: "c"}}, "spec": {}}, "not claimed"),
    ],
)
def test_volumes_that_are_not_the_pods_do_not_count(other: Manifest, id_: str) -> None:
    assert open_to(member("db-0"), other) == "na", id_


def test_nodes_without_a_zone_are_rejected_and_do_not_count() -> None:
    bare, empty = make_node("bare"), make_node("empty", labels={ZONE: ""})
    found = verdicts(member("db-0"), nodes=[bare, empty, *NODES])
    assert found == {"bare": NO_ZONE, "empty": NO_ZONE, "na": None, "nb": OTHER, "nc": OTHER}
    assert verdicts(member("db-0"), nodes=[bare]) == {"bare": NO_ZONE}


def test_a_stateful_set_that_is_not_known_is_a_failure() -> None:
    with pytest.raises(PluginFailedError, match="StatefulSet is not known"):
        verdicts(member("db-0"), sets=[stateful_set(namespace="other")])


def test_zones_that_other_filters_rejected_keep_their_places() -> None:
    cluster = make_nodes(*NODES, objects={STATEFUL_SETS: [stateful_set()], PERSISTENT_VOLUMES: []})
    last = cluster.where(cluster.label(ZONE).isin(("c",)))
    assert StatefulSetZone().filter(member("db-2"), last).reasons == []
    assert StatefulSetZone().filter(member("db-0"), last).reasons == [OTHER]


def test_the_label_can_be_another() -> None:
    old = "failure-domain.beta.kubernetes.io/zone"
    plugin = StatefulSetZone(StatefulSetZone.Args(topology_key=old))
    nodes = [make_node("x", labels={old: "x"}), make_node("y", labels={old: "y", ZONE: "a"})]
    assert open_to(member("db-1"), nodes=nodes, plugin=plugin) == "y"
