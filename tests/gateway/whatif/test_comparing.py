"""What changes between two outcomes of one cycle, why, and how certain a winner is."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from gateway.cycle.answers import PhaseScores, PhaseVerdicts
from gateway.cycle.nodes import bitmap_of
from gateway.whatif.comparing import Comparison, Difference, Outcome
from moorage.execution import PluginRejection, PluginScores

ROWS = np.array([0, 2, 3, 9])
NAMES = {0: "a", 2: "b", 3: "c", 9: "d"}
FULL, TAINTED = PluginRejection("Fit", "full"), PluginRejection("Taints", "tainted")

Scores = Mapping[str, tuple[int, Sequence[float]]]
"""Scores of the feasible nodes, by plugin with its weight."""


def outcome(
    codes: Sequence[int] = (0, 0, 0, 0),
    scores: Scores | None = None,
    *,
    reasons: Sequence[PluginRejection] = (FULL, TAINTED),
    claimants: Sequence[str] = (),
) -> Outcome:
    """Build an outcome of the first nodes, as many as there are codes."""
    rows = ROWS[: len(codes)]
    verdicts = PhaseVerdicts(
        bitmap=bitmap_of(rows), codes=np.array(codes, np.uint16), reasons=reasons
    )
    if scores is None:
        return Outcome(rows=rows, verdicts=verdicts, claimants=claimants)
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
    made = PhaseScores(
        generation=1,
        bitmap=bitmap_of(rows[verdicts.codes == 0]),
        totals=np.asarray(totals, np.float32),
        plugins=plugins,
    )
    return Outcome(rows=rows, verdicts=verdicts, scores=made, claimants=claimants)


def ranked(*totals: float, codes: Sequence[int] | None = None) -> Outcome:
    return outcome(codes or [0] * len(totals), {"Room": (1, totals)})


def compared(live: Outcome, shadow: Outcome) -> Comparison:
    return Comparison(live=live, shadow=shadow, name_at=NAMES.get)


def why(found: Comparison, *kinds: str) -> list[Difference]:
    return [each for each in found.differences() if each.kind in kinds]


NOTHING = Outcome(rows=ROWS)
EQUAL = {"Room": (2, [10, 50, 30, 50])}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (outcome(scores=EQUAL), outcome(scores=EQUAL)),
        (NOTHING, NOTHING),
        # Both reject a node, and the reason is none of what a profile decides.
        (outcome([1, 0, 0, 0]), outcome([2, 0, 0, 0])),
        (outcome([1, 1, 1, 2]), outcome([2, 2, 2, 2])),
        # Each best node of the first is among the best of the second.
        (ranked(9, 0, 0, 0), ranked(9, 9, 0, 0)),
        (ranked(9, 0, 0, 0), outcome()),
    ],
)
def test_what_agrees_for_a_shadow(one: Outcome, other: Outcome) -> None:
    assert why(compared(one, other), "filter", "winner") == []


ROOM, IMAGE = [80, 10, 0, 0], [5, 5, 5, 5]


@pytest.mark.parametrize(
    ("live", "shadow", "expected"),
    [
        # Another weight is the reason, and not the plugin whose part grows by it.
        (
            outcome(scores={"Room": (3, [90, 10, 0, 0]), "Image": (1, [0, 100, 0, 0])}),
            outcome(scores={"Room": (1, [90, 10, 0, 0]), "Image": (1, [0, 100, 0, 0])}),
            "a b Room / has weight 1 instead of 3 / Room has weight 1 instead of 3: a 90, b 10",
        ),
        (
            outcome(scores={"Room": (1, ROOM), "Image": (1, IMAGE)}),
            outcome(scores={"Room": (1, [20, 70, 0, 0]), "Image": (1, IMAGE)}),
            (
                "a b Room / scores otherwise / "
                "Room scores otherwise: a 20, b 70; live profile a 80, b 10"
            ),
        ),
        (
            ranked(60, 50, 0, 0),
            outcome(scores={"Room": (1, [60, 50, 0, 0]), "Image": (1, [0, 90, 0, 0])}),
            "a b Image / scores only in the shadow / Image scores only in the shadow: a 0, b 90",
        ),
        (
            outcome(scores={"Room": (1, [50, 60, 0, 0]), "Image": (1, [90, 0, 0, 0])}),
            ranked(50, 60, 0, 0),
            (
                "a b Image / does not score in the shadow / "
                "Image does not score in the shadow: a 90, b 0"
            ),
        ),
        (
            outcome(),
            ranked(50, 60, 0, 0),
            "a b Room / scores only in the shadow / Room scores only in the shadow: a 50, b 60",
        ),
        (
            ranked(9, 5, 0, 0),
            ranked(5, 0, 0, codes=[1, 0, 0, 0]),
            "a b Fit / rejects the live profile's winner: full / ",
        ),
        (
            ranked(5, 0, 0, codes=[1, 0, 0, 0]),
            ranked(9, 5, 0, 0),
            "b a Fit / no longer rejects the shadow's winner: full / ",
        ),
        (
            outcome([1, 1, 1, 2]),
            outcome([1, 1, 0, 2]),
            " c Fit / no longer rejects the shadow's winner: full / ",
        ),
        (
            outcome([1, 1, 0, 2]),
            outcome([1, 1, 1, 2]),
            "c  Fit / rejects the live profile's winner: full / ",
        ),
    ],
)
def test_another_winner_of_a_shadow_has_the_plugin_that_decides(
    live: Outcome, shadow: Outcome, expected: str
) -> None:
    found = compared(live, shadow)
    (winner,) = why(found, "winner")
    assert why(compared(ranked(9, 9, 0, 0), ranked(9, 0, 0, 0)), "winner"), "a tie that it breaks"
    names = " ".join(found.best_nodes())
    assert f"{names} {winner.plugin} / {winner.reason} / {winner.text}" == expected


def test_rejections_that_differ_have_plugin_reason_and_count() -> None:
    found = why(compared(outcome([1, 1, 0, 0]), outcome([1, 0, 2, 2])), "filter")
    assert [(each.plugin, each.reason, each.text) for each in found] == [
        (
            "Taints",
            "only the shadow rejects: tainted",
            "only the shadow rejects c and 1 more: Taints: tainted",
        ),
        (
            "Fit",
            "only the live profile rejects: full",
            "only the live profile rejects b: Fit: full",
        ),
    ]
