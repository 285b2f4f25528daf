import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import ConfigurationError
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from services.scorer.plugins.node_metadata import NodeMetadata

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


@given(
    st.lists(st.none() | st.integers(-1000, 1000).map(str) | st.just("x"), min_size=1, max_size=6),
    st.sampled_from(("Highest", "Lowest")),
)
def test_agrees_with_a_look_at_each_node(values: list[str | None], strategy: str) -> None:
    sign = 1 if strategy == "Highest" else -1
    numbers = [None if value in (None, "x") else sign * int(value or "") for value in values]
    valid = [number for number in numbers if number is not None]

    def score(number: int | None) -> int:
        if number is None:
            return 0
        span = max(valid) - min(valid)
        return 1 + (99 * (number - min(valid)) // span if span else 0)

    assert scored(plugin(scoringStrategy=strategy), *values) == [score(n) for n in numbers]
