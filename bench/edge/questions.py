"""The questions of the part `edge`: all of them, or those of a quick run."""

from collections.abc import Sequence

from bench.edge.contenders import (
    EMPTY_PROFILE,
    FLOOR,
    GO_PLUGINS,
    MAIN,
    NUMBERED,
    REFERENCE,
    SCATTERED,
)
from bench.edge.measure import Question

PAUSE = 10.0
"""Milliseconds between filter and prioritize in kube-scheduler with 5,000 feasible nodes."""

COMPARED = (REFERENCE, GO_PLUGINS, MAIN)
PAUSED = (*COMPARED, NUMBERED, f"{SCATTERED} 3+3")

QUICK_PODS_PER_NODE = 4


def questions(contenders: Sequence[str]) -> list[Question]:
    """Return all questions; the names of all contenders are given."""
    return [
        *(_names(count, contenders, 200, 80) for count in (50, 500, 800, 5000)),
        *(_names(count, PAUSED, 100, 20, pause=PAUSE) for count in (500, 5000)),
        _whole(30, 120),
    ]


def quick_questions() -> list[Question]:
    """Return those that the budgets are about, with few rounds."""
    asked = (*COMPARED, EMPTY_PROFILE, FLOOR, NUMBERED)
    return [*(_names(count, asked, 80, 10) for count in (500, 5000)), _whole(6, 15)]


def _names(
    nodes: int, contenders: Sequence[str], rounds: int, seconds: float, pause: float = 0
) -> Question:
    return Question(nodes=nodes, contenders=contenders, rounds=rounds, seconds=seconds, pause=pause)


def _whole(rounds: int, seconds: float) -> Question:
    return Question(nodes=5000, contenders=COMPARED, rounds=rounds, seconds=seconds, whole=True)
