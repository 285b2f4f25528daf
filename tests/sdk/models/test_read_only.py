"""What plugins see of pods, nodes and objects cannot be changed, however it came to be."""

import copy
import pickle
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence
from typing import Any

import pytest

from moorage.models import (
    Affinity,
    Container,
    LabelSelector,
    ObjectKind,
    PodAffinity,
    PodAffinityTerm,
    Resources,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
    decode_node,
    decode_passing_pod,
    decode_pod,
    encode,
    freeze_pod,
)
from moorage.testing import make_node, make_nodes, make_pod

TERM = PodAffinityTerm(
    label_selector=LabelSelector(match_labels={"app": "web"}),
    namespace_selector=LabelSelector(match_labels={"team": "red"}),
)
PARTS = PodAffinity(required=(TERM,), preferred=(WeightedPodAffinityTerm(pod_affinity_term=TERM),))
AMOUNTS = Resources(requests={"cpu": "1"}, limits={"cpu": "2"})
POD = make_pod(
    labels={"app": "web"},
    annotations={"a": "b"},
    requests={"cpu": "1"},
    containers=[Container(resources=AMOUNTS)],
    init_containers=[Container(resources=AMOUNTS)],
    overhead={"cpu": "1m"},
    node_selector={"disk": "ssd"},
    affinity=Affinity(pod_affinity=PARTS, pod_anti_affinity=PARTS),
    topology_spread=[TopologySpreadConstraint(label_selector=TERM.label_selector)],
)
BARE = b'{"metadata": {"labels": {}}, "spec": {"containers": [{}]}}'
RACKS = ObjectKind("example.com/v1", "racks")


def mappings(value: Any) -> Iterator[Any]:
    """Yield all mappings inside of a model."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from mappings(item)
    for name in getattr(value, "__struct_fields__", ()):
        yield from mappings(getattr(value, name))


def refuses(change: Callable[[Any], object], value: Any) -> None:
    before = copy.copy(value)
    with pytest.raises(TypeError, match=r"read-only.*change a copy, such as dict\(pod\.labels\)"):
        change(value)
    assert value == before


CHANGES: list[Callable[[MutableMapping[str, Any]], object]] = [
    lambda m: m.__setitem__("new", "x"),
    lambda m: m.__delitem__("app"),
    lambda m: m.update(new="x"),
    lambda m: m.pop("app", None),
    lambda m: m.setdefault("new", "x"),
    lambda m: m.clear(),
    lambda m: m.popitem(),
    lambda m: m.__ior__({"new": "x"}),  # type: ignore[attr-defined]
]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(POD, id="made"),
        pytest.param(decode_pod(encode(POD)), id="shared"),
        pytest.param(freeze_pod(decode_passing_pod(encode(POD))), id="passing"),
        pytest.param(decode_pod(BARE), id="bare"),
        pytest.param(freeze_pod(decode_passing_pod(BARE)), id="bare and passing"),
    ],
)
def test_no_mapping_of_a_pod_can_be_changed(pod: Any) -> None:
    found = [*mappings(pod), pod.requests, pod.nonzero_requests]
    assert len(found) >= 10
    for mapping in found:
        refuses(lambda m: m.__setitem__("new", "x"), mapping)
    for change in CHANGES:
        refuses(change, pod.labels)


@pytest.mark.parametrize("manifest", [make_node(), decode_node(encode(make_node()))])
def test_no_mapping_of_a_node_can_be_changed(manifest: Any) -> None:
    (node,) = make_nodes(manifest)
    found = [*mappings(manifest), node.labels, node.annotations, node.allocatable, node.requested]
    assert len(found) == 7
    for mapping in found:
        refuses(lambda m: m.__setitem__("new", "x"), mapping)
    with pytest.raises(AttributeError, match="labels cannot be set: all plugins share the node"):
        node.labels = {}


def test_objects_are_read_only_all_the_way_down() -> None:
    rack = {"metadata": {"name": "r"}, "spec": {"slots": [{"free": 1}, {"free": 2}]}}
    found: Any = make_nodes(make_node(), objects={RACKS: [rack]}).objects(RACKS).get("r")
    assert found == rack
    refuses(lambda o: o.__setitem__("spec", {}), found)
    refuses(lambda o: o.clear(), found["spec"]["slots"][0])
    slots: MutableSequence[Any] = found["spec"]["slots"]
    for change in (slots.append, slots.remove, slots.extend):
        refuses(lambda _, change=change: change({"free": 1}), slots)  # type: ignore[misc]
    refuses(lambda o: o.sort(), slots)


def test_copies_can_be_changed() -> None:
    labels = POD.labels
    for changed in (dict(labels), copy.copy(dict(labels)), labels | {}):  # type: ignore[operator]
        changed["new"] = "x"
        assert "new" not in labels
    for same in (copy.copy(labels), copy.deepcopy(labels), pickle.loads(pickle.dumps(labels))):
        assert same == labels
        refuses(lambda m: m.clear(), same)
