"""One line that says why."""

from typing import Any

from cli.up.following import Outcome, PodState
from cli.up.reasons import Decision, why

BOUND = PodState(namespace="ns", name="p", uid="u", outcome=Outcome.BOUND, node="n1")
PENDING = PodState(
    namespace="ns", name="p", uid="u", outcome=Outcome.UNSCHEDULABLE, problem="0/3 nodes: full."
)


def scheduler(**more: Any) -> Decision:
    """What the stand-in for kube-scheduler decided: by default, for the only feasible node."""
    filtered = {"nodes": 3, "rejected": {}, "offered": 3, "accepted": 1, "feasible": 1}
    return {"uid": "u", "node": "n1", "nominated": False, "scores": None, **filtered, **more}


def points(in_tree: int, moorage: int | None, **more: Any) -> dict[str, Any]:
    plugins = [
        {"plugin": "Fit", "score": in_tree - 310, "weight": 1},
        {"plugin": "Taint", "score": 100, "weight": 3},
        {"plugin": "Image", "score": 10, "weight": 1},
        {"plugin": "Affinity", "score": 0, "weight": 2},
    ]
    best = {"inTreeBest": "n1", "extendersBest": "" if moorage is None else "n1", "equals": 0}
    return {"inTree": in_tree, "plugins": plugins, "extenders": moorage, **best, **more}


def gateway(*nodes: str, **more: Any) -> Decision:
    """What Moorage decided: the best nodes with the scores of its plugins."""
    names = {"A": (10, 1), "B": (60, 2), "C": (50, 1), "D": (90, 1)}
    scores = [{"plugin": n, "normalized": s, "weight": w} for n, (s, w) in names.items()]
    top = [{"node": node, "total": 81.25, "plugins": scores} for node in nodes]
    return {"filter": {"feasible": 2}, "score": {"top": top}, **more}


def rejecting(**plugins: int) -> Decision:
    listed = [{"plugin": name, "rejected": nodes} for name, nodes in plugins.items()]
    return {"filter": {"feasible": 1, "plugins": [*listed, {"plugin": "Silent"}]}}


def scored(**more: Any) -> Decision:
    return scheduler(accepted=3, feasible=3, scores=points(340, 900, **more))


def test_a_bound_pod_is_explained_by_the_points_of_both_sides() -> None:
    assert why(BOUND, scored(), gateway("n1", "n2")) == (
        "in-tree 340 (Taint 100 x3, Fit 30, Image 10) + Moorage 900 (B 60 x2, D 90, C 50)"
    )


def test_moorage_without_scores_has_no_opinion() -> None:
    asked = scheduler(accepted=3, feasible=3, scores=points(340, None))
    assert why(BOUND, asked, {"filter": {"feasible": 3}}) == (
        "in-tree 340 (Taint 100 x3, Fit 30, Image 10), Moorage has no opinion"
    )


def test_a_side_that_preferred_another_node_is_named_with_it() -> None:
    outweighed = why(BOUND, scored(inTreeBest="n2"), gateway("n1"))
    assert outweighed.endswith("C 50); in-tree alone prefers n2")
    overruled = why(BOUND, scored(extendersBest="n3"), gateway("n3"))
    assert overruled.endswith(" + Moorage 900; Moorage alone prefers n3")


def test_who_rejected_nodes_is_named_though_others_were_left() -> None:
    some = {**scored(), "offered": 5, "accepted": 3, "rejected": {"NodeAffinity": 1}}
    assert why(BOUND, some, {**gateway("n1"), **rejecting(MaxTemperature=2)}).endswith(
        "C 50); in-tree NodeAffinity rejected 1, Moorage MaxTemperature rejected 2"
    )


def test_a_tie_is_told() -> None:
    assert why(BOUND, scored(equals=1), None).endswith("; 1 other node has as many points")
    assert why(BOUND, scored(equals=4), None).endswith("; 4 other nodes have as many points")


def test_the_only_feasible_node_is_explained_by_who_rejected_the_others() -> None:
    made = scheduler(nodes=6, rejected={"NodeAffinity": 1, "NodeResourcesFit": 2})
    assert why(BOUND, made, rejecting(NodeGroup=2)) == (
        "the only feasible node: in-tree NodeResourcesFit rejected 2, "
        "in-tree NodeAffinity rejected 1, Moorage NodeGroup rejected 2"
    )
    assert why(BOUND, scheduler(nodes=1, offered=1), None) == "the only node"
    held = scheduler(nominated=True, offered=1)
    assert why(BOUND, held, None) == "the node where preemption made room for it"


def test_a_record_of_the_gateway_that_does_not_add_up_is_not_shown() -> None:
    assert why(BOUND, scheduler(), rejecting(NodeGroup=1)) == (
        "the only feasible node: Moorage rejected 2"
    )


def test_failures_are_told_though_the_pod_is_bound() -> None:
    failing = {"plugin": "E", "failure": "ValueError: no (e.py:3)"}
    made = dict(gateway("n1", scoreError="no scorer is there"))
    made["score"] = {**made["score"], "plugins": [failing]}
    assert why(BOUND, scored(), made).endswith(
        "; E failed: ValueError: no (e.py:3); no scores: no scorer is there"
    )


def test_a_pending_pod_is_explained_by_who_rejected_how_many_nodes() -> None:
    nowhere = scheduler(node="", offered=2, accepted=0, rejected={"NodeResourcesFit": 1})
    assert why(PENDING, nowhere, rejecting(NodeGroup=2)) == (
        "in-tree NodeResourcesFit rejected 1, Moorage NodeGroup rejected 2: 0/3 nodes: full."
    )
    alone = scheduler(node="", offered=0, accepted=0, rejected={"NodeResourcesFit": 3})
    assert why(PENDING, alone, rejecting(NodeGroup=2)) == (
        "in-tree NodeResourcesFit rejected 3, Moorage was not asked: 0/3 nodes: full."
    )
    assert why(PENDING, None, None) == "0/3 nodes: full."
    assert why(PodState(namespace="ns", name="p", uid="u"), None, None) == "not tried yet"


def test_an_error_is_all_that_is_said_of_a_pod_that_could_not_be_tried() -> None:
    failing = PodState(namespace="ns", name="p", uid="u", outcome=Outcome.FAILING, problem="EOF")
    assert why(failing, scheduler(node="", offered=2), None) == "EOF"


def test_a_forgotten_decision_is_no_error() -> None:
    forgotten = "kube-scheduler no longer has the decision"
    assert why(BOUND, None, gateway("n1")) == forgotten
    assert why(BOUND, {**scheduler(), "uid": "of an earlier pod"}, None) == forgotten
