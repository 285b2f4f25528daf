from collections.abc import Mapping

import pytest

from moorage.measurements import PRESETS, Layout, Preset
from moorage.models import NodeAddress, NodeManifest, NodeStatus
from moorage.models.base import Metadata


def node(name: str = "worker-1", **addresses: str) -> NodeManifest:
    listed = tuple(NodeAddress(type=kind, address=a) for kind, a in addresses.items())
    return NodeManifest(metadata=Metadata(name=name), status=NodeStatus(addresses=listed))


WORKER = node(InternalIP="10.0.0.7", Hostname="worker-1.example.com")


@pytest.mark.parametrize(
    ("preset", "labels"),
    [
        ("node", {"node": "worker-1", "instance": "10.0.0.7:9100"}),
        ("kubernetes-node", {"kubernetes_node": "worker-1", "instance": "10.42.0.3:9100"}),
        ("node-uname-info", {"nodename": "worker-1.example.com"}),
        ("kube-pod-info", {"node": "worker-1"}),
        ("instance-name", {"instance": "worker-1"}),
        ("instance-name", {"instance": "worker-1:9100"}),
        ("instance-ip", {"instance": "10.0.0.7:9100"}),
        ("instance-ip", {"instance": "10.0.0.7"}),
    ],
)
def test_a_preset_recognises_the_node_of_a_series(
    preset: Preset, labels: Mapping[str, str]
) -> None:
    assert PRESETS[preset].key_of(labels) == PRESETS[preset].key_of_node(WORKER)


@pytest.mark.parametrize(
    ("preset", "labels"),
    [
        ("node", {"instance": "10.0.0.7:9100"}),
        ("instance-name", {"instance": "10.0.0.7:9100"}),
        ("instance-ip", {"instance": "worker-1:9100"}),
        ("instance-ip", {}),
    ],
)
def test_a_series_of_another_layout_names_no_node(
    preset: Preset, labels: Mapping[str, str]
) -> None:
    assert PRESETS[preset].key_of(labels) == ""


def test_addresses_of_ipv6_are_recognised_with_and_without_a_port() -> None:
    layout = PRESETS["instance-ip"]
    expected = layout.key_of_node(node(InternalIP="fd00::7"))
    assert layout.key_of({"instance": "[fd00::7]:9100"}) == expected == "fd00::7"
    assert layout.key_of({"instance": "fd00::7"}) == expected


def test_a_port_counts_only_if_the_format_has_one() -> None:
    layout = Layout(label="target", format="{internalIP}:9100")
    assert layout.key_of_node(WORKER) == layout.key_of({"target": "10.0.0.7:9100"})
    assert layout.key_of_node(WORKER) != layout.key_of({"target": "10.0.0.7:9200"})
    assert Layout(label="target").key_of({"target": "worker-1:1"}) == "worker-1"


def test_a_node_without_an_internal_address_has_no_key_by_it() -> None:
    assert PRESETS["instance-ip"].key_of_node(node()) is None


def test_the_first_internal_address_counts() -> None:
    both = (NodeAddress(type="InternalIP", address=a) for a in ("10.0.0.7", "fd00::7"))
    made = NodeManifest(status=NodeStatus(addresses=tuple(both)))
    assert PRESETS["instance-ip"].key_of_node(made) == "10.0.0.7"


def test_a_node_without_a_hostname_has_its_name() -> None:
    assert PRESETS["node-uname-info"].key_of_node(node("n1")) == "n1"


@pytest.mark.parametrize("wrong", ["constant", "{nome}", "{name", "{}", "{name.x}"])
def test_a_format_must_tell_nodes_apart(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"must contain \{name\}"):
        Layout(label="node", format=wrong).check()
