"""Plugins that read additional kinds of objects, and their tests."""

from typing import Any, ClassVar

import pytest

from moorage import (
    PERSISTENT_VOLUMES,
    STATEFUL_SETS,
    FilterPlugin,
    Node,
    Nodes,
    ObjectKind,
    PluginFailedError,
    Pod,
    Preparation,
    Rejection,
    ScorePlugin,
)
from moorage.testing import make_node, make_nodes, make_pod, run_filter, run_score
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.describe import describe_plugin

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


NODES = make_node("n1", labels={"rack": "r1"}), make_node("n2", labels={"rack": "r2"})
OBJECTS = {RACKS: [rack("r1", 0), rack("r2", 7)]}


def test_a_test_gives_the_objects_as_manifests() -> None:
    found = run_filter(FreeRacks(), make_pod(), *NODES, objects=OBJECTS)
    assert found == {"n1": FULL, "n2": None}
    assert run_score(FreeRacks(), make_pod(), *NODES, objects=OBJECTS) == {"n1": 0, "n2": 7}
    assert len(make_nodes(*NODES, objects=OBJECTS)[1:].objects(RACKS)) == 2


def test_a_kind_of_which_there_are_none_is_empty() -> None:
    assert run_filter(FreeRacks(), make_pod(), *NODES) == {"n1": FULL, "n2": FULL}


def test_a_plugin_that_does_not_say_what_it_reads_fails_its_test() -> None:
    with pytest.raises(ValueError, match=r"Undeclared does not read racks\.example\.com"):
        run_filter(Undeclared(), make_pod(), *NODES, objects=OBJECTS)
    with pytest.raises(PluginFailedError, match="must name them in its class attribute `reads`"):
        run_filter(Undeclared(), make_pod(), *NODES)


def test_a_test_s_objects_are_selected_as_the_api_server_does() -> None:
    prices = ObjectKind("v1", "configmaps", namespace="prices", label_selector="tier=spot")
    named = ObjectKind("v1", "configmaps", field_selector="metadata.name=a")
    manifests = [
        {"metadata": {"name": "a", "labels": {"tier": "spot"}}},  # gets the namespace
        {"metadata": {"name": "b", "namespace": "other", "labels": {"tier": "spot"}}},
        {"metadata": {"name": "c", "namespace": "prices", "labels": {"tier": "reserved"}}},
    ]
    nodes = make_nodes(*NODES, objects={prices: manifests, named: manifests})
    assert [each["metadata"]["name"] for each in nodes.objects(prices)] == ["a"]
    found = nodes.objects(prices).get("a")
    assert found is not None
    assert found == nodes.objects(prices).get("a", "prices")
    assert [each["metadata"].get("namespace") for each in nodes.objects(named)] == [None]


@pytest.mark.parametrize(
    ("selectors", "problem"),
    [
        (
            {"label_selector": "tier in spot"},
            r"Wrong\.reads has configmaps .*: label selector .*, char",
        ),
        (
            {"field_selector": "metadata.name"},
            r"Wrong\.reads has configmaps .*: field selector .*, char",
        ),
    ],
)
def test_a_selector_that_is_none_is_refused_with_its_place(
    selectors: dict[str, str], problem: str
) -> None:
    kind = ObjectKind("v1", "configmaps", **selectors)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=problem):
        type("Wrong", (FilterPlugin,), {"reads": (kind,)})


def test_manifests_need_names_of_their_own() -> None:
    with pytest.raises(ValueError, match=r"2 racks\.example\.com have the name 'r1'"):
        make_nodes(objects={RACKS: [rack("r1", 0), rack("r1", 1)]})
    with pytest.raises(ValueError, match=r"one of the racks\.example\.com has no metadata\.name"):
        make_nodes(objects={RACKS: [{"spec": {}}]})


@pytest.mark.parametrize("reads", [STATEFUL_SETS, ("statefulsets",), [STATEFUL_SETS]])
def test_what_a_plugin_reads_is_a_tuple_of_kinds(reads: object) -> None:
    with pytest.raises(TypeError, match=r"Wrong\.reads must be a tuple of ObjectKind"):
        type("Wrong", (FilterPlugin,), {"reads": reads})


def test_a_service_tells_what_its_plugins_read() -> None:
    told = describe_plugin(Registry(FilterPlugin, [FreeRacks]), "FreeRacks").reads
    assert [(kind.api_version, kind.plural) for kind in told] == [("example.com/v1", "racks")]
    assert str(PERSISTENT_VOLUMES) == "persistentvolumes"
