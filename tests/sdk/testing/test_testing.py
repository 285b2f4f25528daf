"""The helpers for tests of plugins: what they build, read and find out."""

import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from moorage import (
    ENDED_PODS,
    FilterPlugin,
    Node,
    Nodes,
    ObjectKind,
    PluginFailedError,
    Pod,
    Preparation,
    Rejection,
    ScorePlugin,
    Scores,
    Verdicts,
)
from moorage.models import (
    Container,
    OwnerReference,
    Resources,
    Taint,
    Toleration,
)
from moorage.testing import (
    assert_same_in_shards,
    make_node,
    make_nodes,
    make_pod,
    run_filter,
    run_score,
)


def test_a_pod_has_what_the_test_asks_for() -> None:
    owner = OwnerReference(kind="Job", name="train", controller=True)
    extra = Container(image="b", resources=Resources(requests={"cpu": 1}))
    pod = make_pod(
        "train-0",
        labels={"app": "train"},
        owner=owner,
        requests={"cpu": "500m", "nvidia.com/gpu": 1},
        image="a",
        containers=[extra],
        images=["c"],
        overhead={"memory": "1Ki"},
        host_ports=[8080],
        claims=["data"],
        tolerations=[Toleration(operator="Exists")],
        gates=["quota"],
        priority=5,
    )
    assert pod.requests == {"cpu": 1500, "nvidia.com/gpu": 1, "memory": 1024}
    assert [container.image for container in pod.spec.containers] == ["a", "c", "b"]
    assert [port.host_port for port in pod.host_ports] == [8080]
    assert pod.claim_names == ("data",)
    assert pod.owner == owner
    assert pod.labels == {"app": "train"}
    assert (pod.spec.priority, pod.spec.scheduling_gates[0].name) == (5, "quota")


def test_a_node_has_what_the_test_asks_for() -> None:
    taint = Taint(key="gpu", effect="NoSchedule")
    node = make_node(
        "n1",
        labels={"zone": "a"},
        annotations={"rack": "7"},
        allocatable={"cpu": "2", "nvidia.com/gpu": 8},
        taints=[taint],
        unschedulable=True,
        images={"web:1": 1000},
    )
    assert (node.name, node.metadata.labels["zone"]) == ("n1", "a")
    assert node.allocatable["cpu"] == 2000
    assert node.allocatable["nvidia.com/gpu"] == 8
    assert node.allocatable["pods"] == 110
    assert (node.spec.taints, node.spec.unschedulable) == ((taint,), True)
    assert node.status.images[0].names == ("web:1",)
    assert node.status.images[0].size_bytes == 1000
    assert node.metadata.annotations == {"rack": "7"}


FAILING = """
from moorage import FilterPlugin
from moorage.testing import make_node, make_pod, run_filter


class Fails(FilterPlugin):
    def filter_node(self, pod, node):
        return int(pod.labels["size"])


def test_it():
    run_filter(Fails(), make_pod(), make_node("a"))
"""


def test_a_failure_shows_the_plugin_and_the_test_only(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILING)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "."]
    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert "PluginFailedError: plugin Fails failed in filter" in result.stdout
    assert 'return int(pod.labels["size"])' in result.stdout
    assert "no running event loop" not in result.stdout
    assert "asyncio.run(" not in result.stdout
    assert "supervisor" not in result.stdout
    assert "harness.py" not in result.stdout


NODES = [make_node(f"n{i}", annotations={"load": str(i)}) for i in range(5)]


def loads(nodes: Nodes) -> Scores:
    numbers: Scores = nodes.annotation("load").map(lambda text: float(text or 0))
    return numbers


class BelowTheMean(FilterPlugin):
    """Compares the nodes of its part."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        self.mean = loads(nodes).mean()
        return None

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        return nodes.verdicts().reject(loads(nodes) > self.mean, "node is busier than most")


class BelowTheClusters(FilterPlugin):
    """Compares with all nodes of the cluster."""

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        mean = loads(nodes.cluster).mean()
        return nodes.verdicts().reject(loads(nodes) > mean, "node is busier than most")


class Ranked(ScorePlugin):
    """Ranks the nodes of its part."""

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        return np.arange(len(nodes), dtype=np.float64)


class Relative(ScorePlugin):
    """Compares in normalize."""

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        return loads(nodes)

    def normalize(self, scores: Scores) -> Scores:
        shares: Scores = 100 * scores / scores.max()
        return shares


class Numbered(FilterPlugin):
    """Numbers the nodes that it is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        self.count = 0
        return None

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        self.count += 1
        self.annotate("example.com/number", str(self.count), node=node)
        return None


@pytest.mark.parametrize("plugin", [BelowTheClusters(), Relative()], ids=lambda each: each.name)
def test_plugins_may_compare_where_they_see_all_nodes(plugin: FilterPlugin | ScorePlugin) -> None:
    assert_same_in_shards(plugin, make_pod(), *NODES, shards=5)


@pytest.mark.parametrize(
    "plugin", [BelowTheMean(), Ranked(), Numbered()], ids=lambda each: each.name
)
def test_others_are_found_out(plugin: FilterPlugin | ScorePlugin) -> None:
    with pytest.raises(AssertionError, match="compares nodes of a shard with each other: its"):
        assert_same_in_shards(plugin, make_pod(), *NODES, shards=2)


def test_one_node_cannot_be_shared() -> None:
    with pytest.raises(ValueError, match="give more"):
        assert_same_in_shards(Relative(), make_pod(), NODES[0])


RACKS = ObjectKind("example.com/v1", "racks")
FULL = Rejection("rack is full")


class FreeRacks(FilterPlugin, ScorePlugin):
    """Keeps pods off nodes in full racks."""

    reads: ClassVar[tuple[ObjectKind, ...]] = (RACKS,)

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        self.racks = nodes.objects(RACKS)
        return None

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return FULL if self.free(node) == 0 else None

    def score_node(self, pod: Pod, node: Node) -> float:
        return self.free(node)

    def free(self, node: Node) -> int:
        rack = self.racks.get(node.labels["rack"])
        return rack["spec"]["free"] if rack else 0


class Undeclared(FreeRacks):
    """Forgot to say so."""

    reads = ()


def rack(name: str, free: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"free": free}}


TWO_NODES = make_node("n1", labels={"rack": "r1"}), make_node("n2", labels={"rack": "r2"})
OBJECTS = {RACKS: [rack("r1", 0), rack("r2", 7)]}


def test_a_test_gives_the_objects_as_manifests() -> None:
    found = run_filter(FreeRacks(), make_pod(), *TWO_NODES, objects=OBJECTS)
    assert found == {"n1": FULL, "n2": None}
    assert run_score(FreeRacks(), make_pod(), *TWO_NODES, objects=OBJECTS) == {"n1": 0, "n2": 7}
    assert len(make_nodes(*TWO_NODES, objects=OBJECTS)[1:].objects(RACKS)) == 2


def test_a_plugin_that_does_not_say_what_it_reads_fails_its_test() -> None:
    with pytest.raises(ValueError, match=r"Undeclared does not read racks\.example\.com"):
        run_filter(Undeclared(), make_pod(), *TWO_NODES, objects=OBJECTS)
    with pytest.raises(PluginFailedError, match="must name them in its class attribute `reads`"):
        run_filter(Undeclared(), make_pod(), *TWO_NODES)


def test_a_test_s_objects_are_selected_as_the_api_server_does() -> None:
    prices = ObjectKind("v1", "configmaps", namespace="prices", label_selector="tier=spot")
    named = ObjectKind("v1", "configmaps", field_selector="metadata.name=a")
    manifests = [
        {"metadata": {"name": "a", "labels": {"tier": "spot"}}},  # gets the namespace
        {"metadata": {"name": "b", "namespace": "other", "labels": {"tier": "spot"}}},
        {"metadata": {"name": "c", "namespace": "prices", "labels": {"tier": "reserved"}}},
    ]
    nodes = make_nodes(*TWO_NODES, objects={prices: manifests, named: manifests})
    assert [each["metadata"]["name"] for each in nodes.objects(prices)] == ["a"]
    found = nodes.objects(prices).get("a")
    assert found is not None
    assert found == nodes.objects(prices).get("a", "prices")
    assert [each["metadata"].get("namespace") for each in nodes.objects(named)] == [None]


def test_pods_are_objects_as_make_pod_makes_them_and_as_services_keep_them() -> None:
    waiting, bound = (
        make_pod("a", labels={"app": "x"}),
        make_pod("b", labels={"app": "x"}, node="n1"),
    )
    apps = ObjectKind("v1", "pods", label_selector="app")
    found = make_nodes(*TWO_NODES, objects={apps: [waiting, bound, make_pod("c")]}).objects(
        apps, Pod
    )
    assert {each.name: each.spec.node_name for each in found} == {"a": "", "b": "n1"}
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}
    ended = {"metadata": {"name": "e", "namespace": "x"}, "status": status}
    (kept,) = make_nodes(objects={ENDED_PODS: [ended]}).objects(ENDED_PODS)
    assert kept["status"] == {"phase": "Failed", "reason": "Evicted"}


def test_manifests_need_names_of_their_own() -> None:
    with pytest.raises(ValueError, match=r"2 racks\.example\.com have the name 'r1'"):
        make_nodes(objects={RACKS: [rack("r1", 0), rack("r1", 1)]})
    with pytest.raises(ValueError, match=r"one of the racks\.example\.com has no metadata\.name"):
        make_nodes(objects={RACKS: [{"spec": {}}]})
