"""Which differences of two outcomes count, and how certain a winner is."""

from collections.abc import Sequence

import numpy as np
import pytest

from cli.whatif.replay.comparing import Winner, ranking_changed, verdict_changes, winner
from cli.whatif.replay.outcome import Outcome, Reason

CROWDED = Reason("Crowded", "node is crowded")
HOT = Reason("Hot", "node is hot")


def outcome(
    *codes: int, totals: Sequence[float] = (), reasons: Sequence[Reason] = (CROWDED, HOT)
) -> Outcome:
    """Build verdicts on rows 0, 1, ..., and totals of those that passed."""
    found = Outcome(rows=np.arange(len(codes)), codes=np.array(codes, np.uint16), reasons=reasons)
    if totals:
        found.scored, found.totals = found.feasible, np.array(totals, np.float32)
    return found


def test_a_verdict_changes_with_the_plugin_that_gives_it() -> None:
    before = outcome(0, 1, 1, 2)
    after = outcome(1, 1, 0, 2, reasons=(HOT, CROWDED))
    changes = verdict_changes(before, after)
    assert [(each.row, each.change, each.plugin) for each in changes] == [
        (0, "rejects", "Hot"),
        (1, "other reason", "Hot"),
        (2, "passes", "Crowded"),
        (3, "other reason", "Crowded"),
    ]
    assert not verdict_changes(before, outcome(0, 2, 2, 1, reasons=(HOT, CROWDED)))


@pytest.mark.parametrize(
    ("before", "after", "is_changed"),
    [
        ((50, 60, 70), (5, 6, 7), False),
        ((50, 60, 70), (50, 60.00001, 70), False),
        ((50, 60, 70), (50, 60, 59), True),
        ((50, 50, 70), (50, 51, 70), True),
    ],
)
def test_a_ranking_is_the_order_and_not_the_totals(
    before: Sequence[float], after: Sequence[float], is_changed: bool
) -> None:
    one, other = outcome(0, 0, 0, totals=before), outcome(0, 0, 0, totals=after)
    assert ranking_changed(one, other) is is_changed


def test_nodes_that_are_feasible_in_one_alone_change_no_ranking_unless_they_are_the_best() -> None:
    one = outcome(0, 0, 1, totals=(50, 60))
    assert not ranking_changed(one, outcome(0, 0, 0, totals=(50, 60, 55)))
    assert ranking_changed(one, outcome(0, 0, 0, totals=(50, 60, 65)))


def claimed(found: Outcome) -> Outcome:
    found.claimants = ("Gpu",)
    return found


@pytest.mark.parametrize(
    ("before", "after", "bound", "expected"),
    [
        # Moorage decides alone: one feasible node, none, or a claim.
        (outcome(0, 1), outcome(1, 0), 0, Winner(before=0, after=1, certainty="exact")),
        (outcome(0, 1), outcome(1, 1), 0, Winner(before=0, after=None, certainty="exact")),
        (
            claimed(outcome(0, 0, totals=(1, 2))),
            claimed(outcome(0, 0, totals=(2, 1))),
            1,
            Winner(before=1, after=0, certainty="exact"),
        ),
        # kube-scheduler had a say: its node stays, unless it fell behind.
        (
            outcome(0, 0, totals=(60, 50)),
            outcome(0, 0, totals=(62, 53)),
            1,
            Winner(before=1, after=1, certainty="likely"),
        ),
        (
            outcome(0, 0, totals=(60, 50)),
            outcome(0, 0, totals=(70, 50)),
            1,
            Winner(before=1, after=0, certainty="likely"),
        ),
        (
            outcome(0, 0, 0, totals=(60, 50, 40)),
            outcome(1, 0, 0, totals=(50, 40)),
            0,
            Winner(before=0, after=1, certainty="likely"),
        ),
        # Without scores of Moorage, any other feasible node is as likely.
        (outcome(0, 0, 0), outcome(1, 0, 1), 1, Winner(before=1, after=1, certainty="exact")),
        (outcome(0, 0), outcome(1, 1), 1, Winner(before=1, after=None, certainty="exact")),
        (outcome(0, 0, 1), outcome(1, 0, 1), 0, Winner(before=0, after=1, certainty="exact")),
        (outcome(0, 0, 0), outcome(1, 0, 0), 0, Winner(before=0, after=1, certainty="likely")),
        (outcome(0, 0, 0), outcome(1, 0, 0), 1, Winner(before=1, after=1, certainty="likely")),
        (outcome(0, 0), outcome(0, 0), None, None),
    ],
)
def test_a_winner_is_exact_only_where_moorage_decides_alone(
    before: Outcome, after: Outcome, bound: int | None, expected: Winner | None
) -> None:
    assert winner(before, after, "uid", bound) == expected
