"""What is found where a shadow decides otherwise, and why."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest

from gateway.decisions.cycle import NodeScores, PluginScores
from gateway.decisions.verdicts import NodeVerdicts
from gateway.shadow.comparing import Comparison, compare
from gateway.shadow.outcomes import Outcome

ROWS = np.array([0, 2, 3, 9])
NAMES = {0: "a", 2: "b", 3: "c", 9: "d"}


class Why(msgspec.Struct, frozen=True):
    plugin: str
    text: str
    unresolvable: bool = False


FULL, TAINTED = Why("Fit", "full"), Why("Taints", "tainted")


def bitmap(rows: Sequence[int]) -> bytes:
    mask = np.zeros(16, np.bool_)
    mask[rows] = True
    return np.packbits(mask, bitorder="little").tobytes()


def outcome(
    codes: Sequence[int] = (0, 0, 0, 0),
    scores: Mapping[str, tuple[int, Sequence[float]]] | None = None,
) -> Outcome:
    """Build an outcome; the scores, by plugin with their weights, are of the feasible nodes."""
    verdicts = NodeVerdicts(
        bitmap=bitmap(ROWS.tolist()), codes=np.array(codes, np.uint16), reasons=[FULL, TAINTED]
    )
    if scores is None:
        return Outcome(rows=ROWS, verdicts=verdicts)
    plugins = [
        PluginScores(
            plugin=name,
            weight=weight,
            raw=np.array(values, np.float64),
            normalized=np.array(values, np.float32),
        )
        for name, (weight, values) in scores.items()
    ]
    weights = sum(each.weight for each in plugins)
    totals = sum(each.weight * each.normalized for each in plugins) / weights
    feasible = [row for row, code in zip(ROWS.tolist(), codes, strict=True) if not code]
    return Outcome(
        rows=ROWS,
        verdicts=verdicts,
        scores=NodeScores(
            generation=1,
            bitmap=bitmap(feasible),
            totals=np.asarray(totals, np.float32),
            plugins=plugins,
        ),
    )


def compared(live: Outcome, shadow: Outcome) -> Comparison:
    return compare(live, shadow, NAMES.get)


def test_the_same_agrees() -> None:
    scores = {"Room": (2, [10, 50, 30, 50])}
    found = compared(outcome(scores=scores), outcome(scores=scores))
    assert found.kinds == []
    assert found.correlation == 1


def test_without_filters_and_scores_all_nodes_are_alike() -> None:
    nothing = Outcome(rows=ROWS, verdicts=None)
    found = compared(nothing, nothing)
    assert found.kinds == []
    assert found.correlation is None


def test_another_weight_is_the_reason_and_not_the_plugin_whose_part_grows_by_it() -> None:
    room, image = [90, 10, 0, 0], [0, 100, 0, 0]
    live = outcome(scores={"Room": (3, room), "Image": (1, image)})
    found = compared(live, outcome(scores={"Room": (1, room), "Image": (1, image)}))
    assert found.kinds == ["winner"]
    assert found.winner is not None
    assert (found.winner.live, found.winner.shadow) == ("a", "b")
    assert (found.winner.plugin, found.winner.reason) == ("Room", "has weight 1 instead of 3")
    assert found.winner.text == "Room has weight 1 instead of 3: a 90, b 10"


@pytest.mark.parametrize(
    ("live", "shadow", "plugin", "reason", "text"),
    [
        (
            {"Room": (1, [80, 10, 0, 0]), "Image": (1, [5, 5, 5, 5])},
            {"Room": (1, [20, 70, 0, 0]), "Image": (1, [5, 5, 5, 5])},
            "Room",
            "scores otherwise",
            "Room scores otherwise: a 20, b 70; live a 80, b 10",
        ),
        (
            {"Room": (1, [60, 50, 0, 0])},
            {"Room": (1, [60, 50, 0, 0]), "Image": (1, [0, 90, 0, 0])},
            "Image",
            "scores only in the shadow",
            "Image scores only in the shadow: a 0, b 90",
        ),
        (
            {"Room": (1, [50, 60, 0, 0]), "Image": (1, [90, 0, 0, 0])},
            {"Room": (1, [50, 60, 0, 0])},
            "Image",
            "does not score in the shadow",
            "Image does not score in the shadow: a 90, b 0",
        ),
        (
            None,
            {"Room": (1, [50, 60, 0, 0])},
            "Room",
            "scores only in the shadow",
            "Room scores only in the shadow: a 50, b 60",
        ),
    ],
)
def test_the_plugin_that_decides_is_the_reason(
    live: Mapping[str, tuple[int, Sequence[float]]] | None,
    shadow: Mapping[str, tuple[int, Sequence[float]]],
    plugin: str,
    reason: str,
    text: str,
) -> None:
    winner = compared(outcome(scores=live), outcome(scores=shadow)).winner
    assert winner is not None
    assert (winner.plugin, winner.reason, winner.text) == (plugin, reason, text)


def test_a_tie_agrees_if_each_best_node_is_also_among_the_shadows() -> None:
    one, tie = (
        outcome(scores={"Room": (1, [9, 0, 0, 0])}),
        outcome(scores={"Room": (1, [9, 9, 0, 0])}),
    )
    assert compared(one, tie).winner is None
    assert compared(tie, one).winner is not None
    assert compared(one, outcome()).winner is None


def test_rejections_that_differ_have_plugin_reason_and_count() -> None:
    found = compared(outcome([1, 1, 0, 0]), outcome([1, 0, 2, 2]))
    assert [
        (each.by, each.plugin, each.reason, each.nodes, each.node) for each in found.filter
    ] == [("shadow", "Taints", "tainted", 2, "c"), ("live", "Fit", "full", 1, "b")]
    assert found.kinds == ["filter", "winner"]


def test_a_node_that_both_reject_for_different_reasons_is_no_difference() -> None:
    assert compared(outcome([1, 0, 0, 0]), outcome([2, 0, 0, 0])).kinds == []


def test_a_winner_that_the_shadow_rejects_has_that_reason() -> None:
    live = outcome(scores={"Room": (1, [9, 5, 0, 0])})
    winner = compared(live, outcome([1, 0, 0, 0], {"Room": (1, [5, 0, 0])})).winner
    assert winner is not None
    assert (winner.live, winner.shadow, winner.plugin) == ("a", "b", "Fit")
    assert winner.reason == "rejects the live winner: full"
    assert winner.text == "the shadow rejects a: full"


def test_a_winner_that_only_the_live_profile_rejects_has_that_reason() -> None:
    live = outcome([1, 0, 0, 0], {"Room": (1, [5, 0, 0])})
    winner = compared(live, outcome(scores={"Room": (1, [9, 5, 0, 0])})).winner
    assert winner is not None
    assert (winner.live, winner.shadow) == ("b", "a")
    assert winner.text == "only the live profile rejects a: full"


def test_a_pod_that_only_one_of_both_can_place() -> None:
    nowhere, somewhere = outcome([1, 1, 1, 2]), outcome([1, 1, 0, 2])
    found, other = compared(nowhere, somewhere).winner, compared(somewhere, nowhere).winner
    assert found is not None
    assert other is not None
    assert (found.live, found.shadow, found.text) == (
        "",
        "c",
        "only the live profile rejects c: full",
    )
    assert (other.live, other.shadow, other.text) == ("c", "", "the shadow rejects c: full")
    assert compared(nowhere, outcome([2, 2, 2, 2])).kinds == []


def test_the_opposite_order_correlates_negatively() -> None:
    live = outcome(scores={"Room": (1, [1, 2, 3, 4])})
    found = compared(live, outcome(scores={"Room": (1, [4, 3, 2, 1])}))
    assert found.correlation == -1
