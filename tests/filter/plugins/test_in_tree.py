"""What kube-scheduler's filters are told by arguments and further objects, and mistakes.

Their verdicts are in `tests/filter/test_golden_verdicts.py`.
"""

from typing import Any

import pytest

from moorage import DEVICE_CLASSES, FilterPlugin, PluginFailedError, Pod, Rejection
from moorage.in_tree.filters.inter_pod_affinity import InterPodAffinity
from moorage.in_tree.filters.node_affinity import NodeAffinity
from moorage.in_tree.filters.node_name import NodeName
from moorage.in_tree.filters.node_resources_fit import NodeResourcesFit
from moorage.in_tree.filters.pod_topology_spread import PodTopologySpread
from moorage.models import (
    Affinity,
    LabelSelector,
    NodeAffinitySpec,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    PodAffinity,
    PodAffinityTerm,
    Requirement,
    TopologySpreadConstraint,
)
from moorage.testing import make_node, make_pod, run_filter
from moorage_host.policy.checks import check_arguments
from tests.clusters import GPU

# 4 cores, 8 GiB, 2 GPUs; 3 cores, 6 GiB and 1 GPU are taken: 1 core, 2 GiB and 1 GPU are free.
NODE = make_node("n1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "2", GPU: "2"})
OTHER = make_pod("other", node="n1", requests={"cpu": "3", "memory": "6Gi", GPU: "1"})
FPGA = "example.com/fpga"
OF_CLASS = "deviceclass.resource.kubernetes.io/"
CLASSES = {
    DEVICE_CLASSES: [
        {"metadata": {"name": "fast"}, "spec": {"extendedResourceName": FPGA}},
        {"metadata": {"name": "plain"}, "spec": {}},
    ]
}


@pytest.mark.parametrize(
    ("args", "requests", "verdict"),
    [
        ({"ignored_resources": (GPU,)}, {GPU: "9"}, None),
        ({"ignored_resource_groups": ("example.com",)}, {GPU: "9"}, None),
        (
            {"ignored_resources": ("gpu",), "ignored_resource_groups": ("example",)},
            {GPU: "9"},
            Rejection(f"Insufficient {GPU}"),
        ),
        ({"ignored_resources": ("cpu",)}, {"cpu": "9"}, Rejection("Insufficient cpu")),
    ],
)
def test_ignored_extended_resources_are_left_to_others(
    args: dict[str, tuple[str, ...]], requests: dict[str, str], verdict: Rejection | None
) -> None:
    plugin = NodeResourcesFit(NodeResourcesFit.Args(**args))
    assert run_filter(plugin, make_pod(requests=requests), NODE) == {"n1": verdict}


@pytest.mark.parametrize(
    ("requests", "short", "unresolvable"),
    [
        pytest.param({FPGA: "1"}, "", False, id="named by a class"),
        pytest.param({f"{OF_CLASS}fast": "1"}, "", False, id="the class's own name"),
        pytest.param({f"{OF_CLASS}plain": "9"}, "", False, id="its only name"),
        pytest.param({GPU: "3"}, GPU, True, id="backed by no class"),
        pytest.param({f"{OF_CLASS}slow": "1"}, f"{OF_CLASS}slow", True, id="of no class"),
        pytest.param({FPGA: "1", "cpu": "2"}, "cpu", False, id="beside what is short"),
    ],
)
def test_resources_that_a_device_class_backs_are_left_to_dynamic_resources(
    requests: dict[str, str], short: str, unresolvable: bool
) -> None:
    pod, verdict = make_pod(requests=requests), Rejection(f"Insufficient {short}", unresolvable)
    verdicts = run_filter(NodeResourcesFit(), pod, NODE, pods=[OTHER], objects=CLASSES)
    assert verdicts == {"n1": verdict if short else None}
    without = run_filter(NodeResourcesFit(), pod, NODE, pods=[OTHER])
    assert without["n1"] is not None


def test_a_node_that_offers_such_a_resource_itself_must_have_enough() -> None:
    nodes = [make_node(f"has-{n}", allocatable={FPGA: str(n)}) for n in range(4)]
    taken = make_pod("other", node="has-2", requests={FPGA: "1"})
    pod, short = make_pod(requests={FPGA: "2"}), f"Insufficient {FPGA}"
    verdicts = run_filter(NodeResourcesFit(), pod, *nodes, pods=[taken], objects=CLASSES)
    assert verdicts == {
        "has-0": None,
        "has-1": Rejection(short),
        "has-2": Rejection(short, unresolvable=False),
        "has-3": None,
    }


WIDE = PodAffinityTerm(
    label_selector=LabelSelector(),
    namespace_selector=LabelSelector(match_labels={"env": "prod"}),
    topology_key="zone",
)
NEAR = NodeSelectorTerm(
    match_expressions=(Requirement(key="zone", operator="Near", values=("a",)),)
)


@pytest.mark.parametrize(
    ("plugin", "affinity", "problem"),
    [
        (
            InterPodAffinity(),
            Affinity(pod_anti_affinity=PodAffinity(required=(WIDE,))),
            "the label 'env' of namespaces is not known",
        ),
        (
            NodeAffinity(),
            Affinity(
                node_affinity=NodeAffinitySpec(required=NodeSelector(node_selector_terms=(NEAR,)))
            ),
            "key 'zone': operator 'Near' does not exist",
        ),
    ],
)
def test_what_cannot_be_decided_is_a_failure_and_not_a_no(
    plugin: FilterPlugin, affinity: Affinity, problem: str
) -> None:
    with pytest.raises(PluginFailedError, match=problem):
        run_filter(plugin, make_pod(affinity=affinity), make_node(labels={"zone": "a"}))


@pytest.mark.parametrize(("wanted", "passing"), [("", {"n1", "n2"}), ("n1", {"n1"}), ("n", set())])
def test_a_pod_that_names_its_node_gets_no_other(wanted: str, passing: set[str]) -> None:
    other = Rejection("node(s) didn't match the requested node name", unresolvable=True)
    verdicts = run_filter(NodeName(), make_pod(node=wanted), make_node("n1"), make_node("n2"))
    assert verdicts == {name: None if name in passing else other for name in ("n1", "n2")}


NODES = (
    *(make_node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")),
    make_node("x"),
)


def spread(pod: Pod, *places: str, plugin: FilterPlugin | None = None) -> set[str]:
    """Return where a pod may go if others run on nodes, written NODE or NODE:VERSION."""
    there = []
    for number, (node, _, version) in enumerate(place.partition(":") for place in places):
        labels = {"app": "web", "version": version}
        there.append(make_pod(f"p{number}", labels=labels, node=node))
    verdicts = run_filter(plugin or PodTopologySpread(), pod, *NODES, pods=there)
    return {name for name, verdict in verdicts.items() if verdict is None}


def test_match_label_keys_count_pods_with_the_same_values_only() -> None:
    """In what is recorded the API server has made them part of the selector."""
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key="zone",
        label_selector=LabelSelector(match_labels={"app": "web"}),
        match_label_keys=("version", "unheard-of"),
    )

    def may_go(**labels: str) -> set[str]:
        pod = make_pod("new", labels={"app": "web", **labels}, topology_spread=[constraint])
        return spread(pod, "a1:1", "a1:1", "b1:2")

    assert may_go(version="2") == {"a1", "a2"}  # a 0, b 1: a is at the minimum
    assert may_go() == {"b1"}


def test_default_constraints_hold_for_pods_of_a_replica_set_without_their_own() -> None:
    zones = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    args: dict[str, Any] = {"defaultConstraints": [zones]}
    with pytest.raises(Exception, match="defaultConstraints need defaultingType: List"):
        check_arguments(args, PodTopologySpread.Args, "args")
    args["defaultingType"] = "List"
    plugin = PodTopologySpread(check_arguments(args, PodTopologySpread.Args, "args"))
    owner = OwnerReference(kind="ReplicaSet", name="web", controller=True)
    owned, bare = (make_pod("new", labels={"app": "web"}, owner=each) for each in (owner, None))
    assert spread(owned, "a1", "a2", "b1", plugin=plugin) == {"b1"}
    assert spread(bare, "a1", "a2", "b1", plugin=plugin) == {"a1", "a2", "b1", "x"}
