"""Equal, ImageScore, NodeCost and NodeMetadata."""

import json
from pathlib import Path

import msgspec
import pytest

from moorage import ConfigurationError, PluginFailedError, Pod
from moorage.models import Container, NodeManifest
from moorage.testing import make_node, make_nodes, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.image_score import ImageScore
from services.scorer.plugins.node_cost import NodeCost
from services.scorer.plugins.node_metadata import NodeMetadata

DIGEST = "sha256:0123"


@pytest.mark.parametrize(
    ("image", "there", "count"),
    [
        ("nginx", "nginx:1.7.9", 1),
        ("nginx", "docker.io/library/nginx:1.7.9", 1),
        ("nginx", "bitnami/nginx-exporter:1", 1),
        ("nginx", f"nginx@{DIGEST}", 1),
        ("nginx:1.7", "nginx:1.7.9", 1),
        ("nginx:1.7.9", "docker.io/library/nginx:1.7.9", 1),
        ("nginx:1.7.9", "nginx:1.7.90", 1),
        ("nginx:1.7.9", "nginx:1.7", 0),
        ("docker.io/library/nginx:1.7.9", "nginx:1.7.9", 0),
        ("nginx:latest", f"nginx@{DIGEST}", 0),
        (f"nginx@{DIGEST}", f"docker.io/library/nginx@{DIGEST}", 1),
        ("Nginx", "nginx:1.7.9", 0),
        ("", "nginx:1.7.9", 1),
    ],
)
def test_an_image_counts_as_part_of_a_name(image: str, there: str, count: int) -> None:
    nodes = make_node("has", images={there: 1}), make_node("empty")
    assert counts(make_pod(image=image), *nodes) == [count, 0]


def test_containers_count_one_each_and_init_containers_do_not() -> None:
    pod = make_pod(
        image="nginx", images=["nginx", "redis"], init_containers=[Container(image="db")]
    )
    both = make_node("both", images={"nginx:1": 1, "nginx:2": 1, "redis:1": 1, "db:1": 1})
    assert counts(pod, both, make_node("one", images={"redis:1": 1})) == [3, 1]


def test_more_than_10_containers_share_the_points() -> None:
    # 20 and 10 containers: 100 * 10 / 20
    pod = make_pod(image="a", images=["a"] * 9 + ["b"] * 10)
    nodes = make_node("all", images={"a:1": 1, "b:1": 1}), make_node("phase", images={"a:1": 1})
    assert run_score(ImageScore(), pod, *nodes) == {"all": 100, "phase": 50}


def counts(pod: Pod, *nodes: NodeManifest) -> list[float]:
    scores: list[float] = ImageScore().score(pod, make_nodes(*nodes)).tolist()
    return scores


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


KEY = "example.com/price"


def plugin(**args: str) -> NodeMetadata:
    given = {"metadataKey": KEY, "metadataSource": "Annotation", **args}
    return NodeMetadata(check_arguments(given, NodeMetadata.Args, "args"))


def scored(scoring: NodeMetadata, *values: str | None) -> list[float]:
    nodes = [
        make_node(f"n{i}", annotations={} if value is None else {KEY: value})
        for i, value in enumerate(values)
    ]
    return list(run_score(scoring, make_pod(), *nodes).values())


# 1 + 99 * (value - lowest) // span
@pytest.mark.parametrize(
    ("strategy", "scores"),
    [
        # span 30: 0, 10, 30 of it: 1, 1 + 33, 100
        pytest.param("Highest", [1, 34, 100], id="Highest"),
        # 30, 20, 0 of it: 100, 1 + 66, 1
        pytest.param("Lowest", [100, 67, 1], id="Lowest"),
    ],
)
def test_numbers_are_spread_over_1_to_100(strategy: str, scores: list[float]) -> None:
    assert scored(plugin(scoringStrategy=strategy), "10", "20.9", "40") == scores


@pytest.mark.parametrize(
    ("strategy", "scores"),
    [
        # One day apart and two: 0, 1, 3 of 3 days
        pytest.param("Newest", [1, 34, 100], id="Newest"),
        pytest.param("Oldest", [100, 67, 1], id="Oldest"),
    ],
)
def test_times_are_too(strategy: str, scores: list[float]) -> None:
    newest = plugin(metadataType="Timestamp", scoringStrategy=strategy)
    times = ("2026-01-01T00:00:00Z", "2026-01-02T01:00:00+01:00", "2026-01-04T00:00:00Z")
    assert scored(newest, *times) == scores
    other = plugin(
        metadataType="Timestamp", scoringStrategy=strategy, timestampFormat="%d.%m.%Y %H:%M"
    )
    times = ("01.01.2026 00:00", "02.01.2026 00:00", "04.01.2026 00:00")
    assert scored(other, *times) == scores


@pytest.mark.parametrize(
    "invalid", [None, "", "many", "1_0", " 1", "nan", "inf", "2026-01-01T00:00:00Z"]
)
def test_nodes_without_a_valid_number_get_0(invalid: str | None) -> None:
    assert scored(plugin(), "5", invalid, "-5") == [100, 0, 1]
    assert scored(plugin(), invalid, invalid) == [0, 0]


def test_a_time_that_is_none_gets_0() -> None:
    newest = plugin(metadataType="Timestamp", scoringStrategy="Newest")
    assert scored(newest, "2026-01-01T00:00:00Z", "yesterday", "5") == [1, 0, 0]


def test_nodes_with_the_same_value_get_1() -> None:
    assert scored(plugin(), "7", "7.5", None) == [1, 1, 0]


def test_there_may_be_a_value_for_nodes_without_one() -> None:
    assert scored(plugin(defaultValue="20"), "10", None, "many", "40") == [1, 34, 0, 100]


def test_labels_can_be_read_as_well() -> None:
    nodes = [make_node(f"n{i}", labels={KEY: str(i)}, annotations={KEY: "0"}) for i in range(2)]
    assert run_score(plugin(metadataSource="Label"), make_pod(), *nodes) == {"n0": 1, "n1": 100}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"scoringStrategy": "Newest"}, "of a Number must be Highest or Lowest"),
        (
            {"metadataType": "Timestamp", "scoringStrategy": "Lowest"},
            "of a Timestamp must be Newest or Oldest",
        ),
    ],
)
def test_the_strategy_must_suit_the_type(args: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        plugin(**args)
