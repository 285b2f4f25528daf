import json
from pathlib import Path

import msgspec
import pytest

from moorage import PluginFailedError
from moorage.models import NodeManifest
from moorage.testing import make_node, make_pod, run_score
from services.scorer.plugins.node_cost import NodeCost

TYPE, REGION = "node.kubernetes.io/instance-type", "topology.kubernetes.io/region"


def cost(**args: object) -> NodeCost:
    return NodeCost(NodeCost.Args(**args))  # type: ignore[arg-type]


def prices(tmp_path: Path, **numbers: float) -> str:
    file = tmp_path / "prices.yaml"
    file.write_text(json.dumps(numbers))
    return str(file)


def priced(*numbers: str) -> list[NodeManifest]:
    annotations = [{"example.com/cost": number} for number in numbers]
    return [make_node(f"n{i}", annotations=each) for i, each in enumerate(annotations)]


def rounded(scores: dict[str, float]) -> dict[str, int]:
    return {name: round(score) for name, score in scores.items()}


def test_the_cheapest_has_100_and_others_the_ratio_to_it() -> None:
    scores = run_score(cost(), make_pod(), *priced("100", "110", "900"))
    assert rounded(scores) == {"n0": 100, "n1": 91, "n2": 11}
    scores = run_score(cost(better="highest"), make_pod(), *priced("100", "50", "0"))
    assert rounded(scores) == {"n0": 100, "n1": 50, "n2": 0}
    scores = run_score(cost(), make_pod(), *priced("0", "0", "2"))
    assert rounded(scores) == {"n0": 100, "n1": 100, "n2": 0}


def test_nodes_that_cost_about_the_same_are_the_same() -> None:
    nodes = priced("100", "104", "106")
    scores = run_score(cost(tolerance=0.05), make_pod(), *nodes)
    assert rounded(scores) == {"n0": 100, "n1": 100, "n2": 94}


def test_numbers_stand_in_a_file_by_the_value_of_a_label(tmp_path: Path) -> None:
    nodes = [make_node(f"n{i}", labels={TYPE: kind}) for i, kind in enumerate(("small", "big"))]
    plugin = cost(file=prices(tmp_path, small=1, big=4), label=TYPE)
    assert rounded(run_score(plugin, make_pod(), *nodes)) == {"n0": 100, "n1": 25}


def test_numbers_stand_in_a_mounted_config_map_by_node(tmp_path: Path) -> None:
    for name, number in {"n0": "2\n", "n1": "1"}.items():
        (tmp_path / name).write_text(number)
    (tmp_path / "..data").mkdir()
    plugin = cost(file=str(tmp_path))
    scores = run_score(plugin, make_pod(), make_node("n0"), make_node("n1"), make_node("n2"))
    assert rounded(scores) == {"n0": 50, "n1": 100, "n2": 75}
    assert (
        plugin.latest_note == "1 of 3 nodes have no measurements, such as n2 (onMissing: neutral)"
    )


def test_replicas_make_their_region_dearer() -> None:
    nodes = [
        make_node(name, labels={REGION: name[0]}, annotations={"example.com/cost": price})
        for name, price in {"a1": "10", "a2": "10", "b1": "12"}.items()
    ]
    there = [make_pod(f"web-{i}", labels={"app": "web"}, node="a1") for i in range(2)]
    plugin = cost(spread_by=REGION, spread=0.2)
    web, other = make_pod("web", labels={"app": "web"}), make_pod("db", labels={"app": "db"})
    assert rounded(run_score(plugin, web, *nodes, pods=there[:1])) == {
        "a1": 100,
        "a2": 100,
        "b1": 100,
    }
    assert rounded(run_score(plugin, web, *nodes, pods=there)) == {"a1": 86, "a2": 86, "b1": 100}
    assert rounded(run_score(plugin, other, *nodes, pods=there))["b1"] == 83


def test_a_file_with_something_else_than_numbers_does_not_start(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("n0: cheap")
    with pytest.raises((PluginFailedError, ValueError)):
        run_score(cost(file=str(file)), make_pod(), make_node("n0"))


@pytest.mark.parametrize(
    "args",
    [
        {"query": "x"},
        {"label": TYPE},
        {"file": "f", "query": "x", "prometheus": {"address": "http://p"}},
    ],
)
def test_arguments_that_contradict_each_other_are_refused(args: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"leave|need|says"):
        msgspec.convert(args, NodeCost.Args)
