"""Plugins that lose Prometheus say so in the decision, whatever they then do."""

from contextlib import suppress
from typing import Any

import pytest

from moorage import PluginFailedError, ScorePlugin
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins import BUILT_INS
from services.scorer.plugins.load.congestion_factor import CongestionFactor
from tests.annotated import loaded_node

NOWHERE = {"prometheus": {"address": "http://127.0.0.1:1"}}
MEASURING = [kind for kind in BUILT_INS if "prometheus" in kind.Args.__struct_fields__]
OTHERS: dict[str, dict[str, str]] = {
    "CongestionFactor": {"query": "node_load5"},
    "NodeCost": {"query": "price"},
}
POD = make_pod(requests={"cpu": "500m"})


def blind(kind: type[ScorePlugin], **args: Any) -> ScorePlugin:
    return kind(
        check_arguments({**NOWHERE, **OTHERS.get(kind.name, {}), **args}, kind.Args, "args")
    )


def test_eight_plugins_measure() -> None:
    assert len(MEASURING) == 8


@pytest.mark.parametrize("on_missing", ["neutral", "worst", "fail"])
@pytest.mark.parametrize("kind", MEASURING, ids=lambda kind: kind.name)
def test_a_silent_prometheus_is_noted(kind: type[ScorePlugin], on_missing: str) -> None:
    plugin = blind(kind, onMissing=on_missing)
    nodes = loaded_node("a", free_cpu=1000), loaded_node("b")
    failed = True
    with suppress(PluginFailedError):
        run_score(plugin, POD, *nodes)
        failed = False
    assert failed == (on_missing != "worst")
    assert plugin.latest_note.startswith(
        f"2 of 2 nodes have no measurements (onMissing: {on_missing}); cannot query Prometheus "
    )


def test_nodes_without_a_factor_are_noted_unless_they_are_idle() -> None:
    nodes = make_node("a", annotations={"congestion-factor": "50"}), make_node("b")
    plugin = CongestionFactor()
    run_score(plugin, POD, *nodes)
    assert plugin.latest_note == ""
    plugin = CongestionFactor(CongestionFactor.Args(on_missing="neutral"))
    run_score(plugin, POD, *nodes)
    assert plugin.latest_note == "1 of 2 nodes have no measurements, such as b (onMissing: neutral)"


def test_nodes_that_only_seem_idle_because_prometheus_is_silent_are_noted() -> None:
    plugin = blind(CongestionFactor)
    run_score(plugin, POD, make_node("a"))
    assert plugin.latest_note.startswith(
        "1 of 1 nodes have no measurements (onMissing: idle); cannot query Prometheus "
    )
