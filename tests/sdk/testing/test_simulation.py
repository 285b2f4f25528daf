"""The fixture `moorage_simulate` places pods as a cluster would, with the plugins of a test."""

import subprocess

import pytest

from moorage import Arguments, FilterPlugin, Node, Pod, Rejection, ScorePlugin
from moorage.testing import make_node, make_pod
from moorage_pytest.simulation import Simulate, SimulationError

NODES = [make_node(name, allocatable={"cpu": "2"}) for name in ("a", "b")]


class NotOn(FilterPlugin):
    """Keeps pods off one node."""

    class Args(Arguments):
        node: str = "a"

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection("not here") if node.name == self.args.node else None


class PrefersA(ScorePlugin):
    """Prefers the first node."""

    def score_node(self, pod: Pod, node: Node) -> float:
        return 100.0 * (node.name == "a")


class PrefersB(ScorePlugin):
    """Prefers the second node."""

    def score_node(self, pod: Pod, node: Node) -> float:
        return 100.0 * (node.name == "b")


def test_pods_go_where_plugins_weights_and_other_pods_leave_room(
    moorage_simulate: Simulate,
) -> None:
    for heavier in "ab":
        weights = {f"Prefers{heavier.upper()}": 9}
        web = make_pod("web", namespace="shop")
        placed = moorage_simulate(PrefersA, PrefersB, nodes=NODES, pods=[web], weights=weights)
        assert placed.nodes == {"shop/web": heavier}
    pods = [make_pod("first", requests={"cpu": "1"}), make_pod("last", requests={"cpu": "1"})]
    full = [make_pod("there", node="a", requests={"cpu": "1"})]
    arguments = {"NotOn": {"node": "b"}}
    placed = moorage_simulate(NotOn, nodes=NODES, pods=pods, existing=full, arguments=arguments)
    assert placed.nodes == {"first": "a", "last": None}
    assert "1 Insufficient cpu (NodeResourcesFit)" in placed.reasons["last"]
    assert "1 not here (NotOn)" in placed.reasons["last"]
    assert placed.report["policies"][0]["placements"][1]["pod"] == "default/last"


def test_arguments_that_a_plugin_refuses_and_a_time_that_is_over_are_errors(
    moorage_simulate: Simulate,
) -> None:
    with pytest.raises(SimulationError, match=r"args\.node: expected"):
        moorage_simulate(NotOn, nodes=NODES, pods=[make_pod()], arguments={"NotOn": {"node": 1}})
    with pytest.raises(subprocess.TimeoutExpired):
        moorage_simulate(NotOn, nodes=NODES, pods=[make_pod()], timeout=0.001)
