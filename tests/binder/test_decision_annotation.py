"""What is written onto pods about the decision."""

import json
from typing import Any

import pytest

from moorage import DecisionSummary, ScoredNode
from moorage.testing import make_binding, make_pod, run_pre_bind
from services.binder.plugins.decision_annotation import KEY, DecisionAnnotation

DECISION = DecisionSummary(
    winner=ScoredNode(
        node="n2", score=79.625, plugins={"A": 100.0, "B": 66.666, "C": 12.0, "D": 1.0}
    ),
    runner_up=ScoredNode(node="n1", score=70.0, plugins={"A": 90.0}),
    nodes=3,
    feasible=2,
    policy_revision="0123456789ab",
    generation=42,
)


def annotation(decision: DecisionSummary | None, **args: Any) -> str | None:
    binding = make_binding(make_pod(), "n2", decision=decision)
    assert run_pre_bind(DecisionAnnotation(DecisionAnnotation.Args(**args)), binding) is None
    return binding.annotations.get(KEY)


def test_it_says_where_the_pod_is_and_why() -> None:
    written = annotation(DECISION)
    assert written is not None
    assert json.loads(written) == {
        "winner": {"node": "n2", "score": 79.6, "plugins": {"A": 100.0, "B": 66.7, "C": 12.0}},
        "runnerUp": {"node": "n1", "score": 70.0},
        "nodes": 3,
        "feasible": 2,
        "policyRevision": "0123456789ab",
        "generation": 42,
    }


@pytest.mark.parametrize(("count", "names"), [(0, []), (1, ["A"]), (20, ["A", "B", "C", "D"])])
def test_how_many_plugins_is_an_argument(count: int, names: list[str]) -> None:
    written = annotation(DECISION, plugins=count)
    assert written is not None
    assert list(json.loads(written)["winner"].get("plugins", {})) == names


def test_a_node_that_nobody_scored_has_no_score() -> None:
    written = annotation(DecisionSummary(winner=ScoredNode(node="n2"), nodes=1, feasible=1))
    assert written is not None
    assert json.loads(written) == {"winner": {"node": "n2"}, "nodes": 1, "feasible": 1}


def test_it_stays_small_however_long_the_names_are() -> None:
    names = {f"{number}{'x' * 900}": 50.0 for number in range(20)}
    winner = ScoredNode(node="n" * 253, score=50.0, plugins=names)
    written = annotation(DecisionSummary(winner=winner, runner_up=winner), plugins=20)
    assert written is not None
    assert 2000 < len(written) <= 4096
    written = annotation(
        DecisionSummary(winner=winner, runner_up=winner), plugins=20, max_bytes=2000
    )
    assert written is not None
    assert 1000 < len(written) <= 2000


def test_nothing_is_written_about_a_decision_that_nobody_remembers() -> None:
    assert annotation(None) is None
