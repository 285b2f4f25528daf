from typing import Any

import pytest

from sandbox.scheduler.cache import KnownPod, NodeInfo
from sandbox.scheduler.config import Profile
from sandbox.scheduler.filters import Filters, named_nodes
from sandbox.scheduler.verdicts import Refusal
from tests.sandbox.scheduler.support import configuration, known_pod, node_info, requesting

TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}


def refused(pod: KnownPod, node: NodeInfo, **options: Any) -> tuple[str, Refusal] | None:
    filters = Filters(Profile(), options.get("ignored", frozenset()))
    return filters.prepare(pod.pod).refusal(node)


def port(number: int, **fields: str) -> Any:
    ports = [{"containerPort": 1, "hostPort": number, **fields}]
    return {"containers": [{"name": "main", "ports": ports}]}


def required(*terms: Any) -> Any:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def test_a_plain_pod_fits_a_plain_node() -> None:
    assert refused(known_pod(), node_info()) is None


@pytest.mark.parametrize(
    ("node", "spec", "plugin", "reason"),
    [
        ({"unschedulable": True}, {}, "NodeUnschedulable", "node(s) were unschedulable"),
        ({"taints": [TAINT]}, {}, "TaintToleration", "node(s) had untolerated taint(s)"),
        (
            {"labels": {"disk": "hdd"}},
            {"nodeSelector": {"disk": "ssd"}},
            "NodeAffinity",
            "node(s) didn't match Pod's node affinity/selector",
        ),
        (
            {},
            {"affinity": required({"matchExpressions": [{"key": "a", "operator": "Exists"}]})},
            "NodeAffinity",
            "node(s) didn't match Pod's node affinity/selector",
        ),
    ],
)
def test_what_removing_pods_cannot_cure(node: Any, spec: Any, plugin: str, reason: str) -> None:
    assert refused(known_pod(**spec), node_info(**node)) == (
        plugin,
        Refusal((reason,), unresolvable=True),
    )


def test_a_pod_that_tolerates_may_use_cordoned_and_tainted_nodes() -> None:
    everything = known_pod(tolerations=[{"operator": "Exists"}])
    assert refused(everything, node_info(unschedulable=True, taints=[TAINT])) is None
    soft = node_info(taints=[{"key": "a", "effect": "PreferNoSchedule"}])
    assert refused(known_pod(), soft) is None


def test_resources_that_are_taken_are_missing() -> None:
    node = node_info(allocatable={"cpu": "2", "memory": "4Gi", "pods": "9", "x/gpu": "1"})
    node.add(known_pod("other", **requesting(cpu="1500m", memory="1Gi")))
    assert refused(known_pod(**requesting(cpu="500m", memory="3Gi")), node) is None
    pod = known_pod(**requesting(memory="3500Mi", cpu="501m"))
    assert refused(pod, node) == (
        "NodeResourcesFit",
        Refusal(("Insufficient cpu", "Insufficient memory")),
    )


def test_what_the_node_never_had_cannot_be_freed() -> None:
    assert refused(known_pod(**requesting(cpu="5")), node_info()) == (
        "NodeResourcesFit",
        Refusal(("Insufficient cpu",), unresolvable=True),
    )


def test_resources_that_only_an_extender_counts_are_not_checked() -> None:
    pod = known_pod(containers=[{"resources": {"requests": {"x/gpu": "1"}}}])
    assert refused(pod, node_info())
    assert refused(pod, node_info(), ignored=frozenset({"x/gpu"})) is None


def test_the_number_of_pods_is_limited() -> None:
    node = node_info(allocatable={"cpu": "4", "pods": "1"})
    assert refused(known_pod("a"), node) is None
    node.add(known_pod("b"))
    assert refused(known_pod("a"), node) == ("NodeResourcesFit", Refusal(("Too many pods",)))
    node.remove("b")
    assert refused(known_pod("a"), node) is None


@pytest.mark.parametrize(
    ("taken", "wanted", "clash"),
    [
        (port(80), port(80), True),
        (port(80), port(81), False),
        (port(80), port(80, protocol="UDP"), False),
        (port(80, hostIP="10.0.0.1"), port(80, hostIP="10.0.0.2"), False),
        (port(80, hostIP="10.0.0.1"), port(80), True),
    ],
)
def test_host_ports_clash(taken: Any, wanted: Any, clash: bool) -> None:
    node = node_info()
    node.add(known_pod("other", **taken))
    no = refused(known_pod(**wanted), node)
    assert (no == ("NodePorts", refusal_of_ports())) if clash else no is None


def refusal_of_ports() -> Refusal:
    return Refusal(("node(s) didn't have free ports for the requested pod ports",))


def test_a_disabled_filter_says_nothing() -> None:
    plugins = {"filter": {"disabled": [{"name": "*"}]}}
    (profile,) = configuration(profiles=[{"plugins": plugins}]).profiles
    checks = Filters(profile, frozenset()).prepare(known_pod(**requesting(cpu="99")).pod)
    assert checks.refusal(node_info(unschedulable=True)) is None


def test_pods_of_a_daemon_set_name_their_node() -> None:
    def names(*values: str) -> Any:
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": values}]}

    assert named_nodes(known_pod().pod) is None
    assert named_nodes(known_pod(affinity=required(names("a"), names("b"))).pod) == frozenset("ab")
    free = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    assert named_nodes(known_pod(affinity=required(names("a"), free)).pod) is None
