"""One line that says why."""

from cli.following import Outcome, PodState
from cli.reasons import Decision, why

BOUND = PodState(namespace="ns", name="p", uid="u", outcome=Outcome.BOUND, node="n1")


def score(name: str, normalized: float, weight: int = 1) -> dict[str, object]:
    return {"plugin": name, "raw": 1, "normalized": normalized, "weight": weight}


def decision(*nodes: str, **more: object) -> Decision:
    scores = [score("A", 10), score("B", 60, 2), score("C", 50), score("D", 90)]
    top = [{"node": node, "total": 81.25, "plugins": scores} for node in nodes]
    return {"filter": {"feasible": 2}, "score": {"top": top}, **more}


def test_a_bound_pod_is_explained_by_the_scores_that_weighed_most() -> None:
    assert why(BOUND, decision("n1", "n2")) == "score 81.2: B 60 x2, D 90, C 50"


def test_a_place_that_is_not_among_our_best_is_kube_schedulers() -> None:
    assert why(BOUND, decision("n2")) == "kube-scheduler's own scores: ours were best on n2"


def test_the_only_feasible_node_is_explained_by_who_rejected_the_others() -> None:
    plugins = [{"plugin": "A", "rejected": 2}, {"plugin": "B"}]
    only = {"filter": {"feasible": 1, "plugins": plugins}}
    assert why(BOUND, only) == "the only feasible node: A rejected 2"
    assert why(BOUND, {"filter": {"feasible": 1}}) == "the only feasible node"


def test_failures_are_told_though_the_pod_is_bound() -> None:
    failing = {"plugin": "E", "failure": "ValueError: no (e.py:3)"}
    made = decision("n1", scoreError="no scorer is there")
    made["score"]["plugins"] = [failing]
    assert why(BOUND, made).endswith(
        "; E failed: ValueError: no (e.py:3); no scores: no scorer is there"
    )


def test_a_pending_pod_is_explained_by_kube_scheduler() -> None:
    pending = PodState(namespace="ns", name="p", uid="u", problem="0/3 nodes are available")
    assert why(pending, decision("n1")) == "0/3 nodes are available"
    assert why(PodState(namespace="ns", name="p", uid="u"), None) == "not tried yet"


def test_a_forgotten_decision_is_no_error() -> None:
    assert why(BOUND, None) == "the gateway does not remember the decision"
