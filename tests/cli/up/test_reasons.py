"""One line that says why."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cli.up.following import Outcome, PodState
from cli.up.reasons import Decision, why

BOUND = PodState(namespace="ns", name="p", uid="u", outcome=Outcome.BOUND, node="n1")
PENDING = PodState(
    namespace="ns", name="p", uid="u", outcome=Outcome.UNSCHEDULABLE, problem="0/3 nodes: full."
)
FIT = "NodeResourcesFit"
TAINT = "TaintToleration"


def scheduler(**more: Any) -> Decision:
    """What the stand-in for kube-scheduler decided: by default, for the only feasible node."""
    filtered = {"nodes": 3, "rejected": [], "offered": 3, "accepted": 1, "feasible": 1}
    return {"uid": "u", "node": "n1", "nominated": False, "scores": None, **filtered, **more}


def rejecting(plugin: str, **reasons: int) -> dict[str, Any]:
    counted = {reason.replace("_", " "): nodes for reason, nodes in reasons.items()}
    return {"plugin": plugin, "nodes": sum(reasons.values()), "reasons": counted}


def node(name: str, moorage: int | None, fit: int, taint: int = 100) -> dict[str, Any]:
    plugins = [
        {"plugin": FIT, "score": fit, "weight": 1},
        {"plugin": TAINT, "score": taint, "weight": 3},
    ]
    return {"node": name, "inTree": fit + 3 * taint, "plugins": plugins, "extenders": moorage}


def scored(
    chosen: Mapping[str, Any],
    other: Mapping[str, Any],
    preferred: Mapping[str, Any] | None = None,
    **more: Any,
) -> Decision:
    scores = {"chosen": chosen, "runnerUp": other, "preferred": preferred, "equals": 0, **more}
    return scheduler(accepted=3, feasible=3, scores=scores)


def gateway(*, scale: int = 100, tied: int = 0, **nodes: tuple[float, float]) -> Decision:
    """What Moorage decided: the best nodes with the scores of its plugins A x1 and B x3."""
    top = [
        {
            "node": name,
            "total": (a + 3 * b) / 4,
            "plugins": [
                {"plugin": "A", "normalized": a, "weight": 1},
                {"plugin": "B", "normalized": b, "weight": 3},
            ],
        }
        for name, (a, b) in nodes.items()
    ]
    return {"filter": {"feasible": 3}, "score": {"top": top, "scale": scale, "tied": tied}}


def rejected(**plugins: dict[str, int]) -> Decision:
    listed = [
        {
            "plugin": name,
            "rejected": sum(reasons.values()),
            "reasons": [{"reason": reason, "nodes": nodes} for reason, nodes in reasons.items()],
        }
        for name, reasons in plugins.items()
    ]
    return {"filter": {"feasible": 1, "plugins": [*listed, {"plugin": "Silent"}]}}


def test_a_node_beats_the_runner_up_by_what_the_plugins_differ_in() -> None:
    made = scored(node("n1", 7500, fit=20), node("n2", 6000, fit=50))
    assert why(BOUND, made, gateway(n1=(0, 100), n2=(80, 53.3333))) == (
        f"beats n2 by 1470: Moorage +1500 (B +3500, A -2000), in-tree {FIT} -30"
    )
    assert why(BOUND, made, None) == f"beats n2 by 1470: Moorage +1500, in-tree {FIT} -30"
    one = gateway(n1=(50, 60), n2=(50, 50))
    assert why(BOUND, made, one) == (f"beats n2 by 1470: Moorage B +1500, in-tree {FIT} -30")


def test_what_all_nodes_have_alike_is_not_named() -> None:
    made = scored(node("n1", 7500, fit=50), node("n2", 7500, fit=20))
    assert why(BOUND, made, gateway(n1=(75, 75), n2=(75, 75))) == (
        f"beats n2 by 30: in-tree {FIT} +30; Moorage finds both alike"
    )


def test_moorage_without_scores_has_decided_nothing() -> None:
    made = scored(node("n1", None, fit=50), node("n2", None, fit=20))
    beats = f"beats n2 by 30: in-tree {FIT} +30"
    skipped = {"plugin": "DataLocality", "skipped": True, "note": "no ConfigMap names a node"}
    gave_none = {"filter": {"feasible": 3}, "score": {"plugins": [skipped]}}
    assert why(BOUND, made, gave_none) == (
        f"{beats}; Moorage gave no scores; DataLocality skipped the pod: no ConfigMap names a node"
    )
    without_score_plugins = {"filter": {"feasible": 3}}
    assert why(BOUND, made, without_score_plugins) == beats


def test_moorage_that_was_not_asked_gave_no_scores_either() -> None:
    made = scored(node("n1", None, fit=50), node("n2", None, fit=20))
    assert why(BOUND, {**made, "offered": 0, "accepted": 0}, None).endswith(
        "; Moorage was not asked"
    )


def test_in_tree_scores_that_outvoted_moorage_are_named() -> None:
    best = node("n2", 1500, fit=20, taint=0)
    made = scored(node("n1", 1350, fit=10), node("n3", 1350, fit=0), best)
    assert why(BOUND, made, gateway(n2=(10, 10), n1=(9, 9))) == (
        f"outvotes Moorage, which prefers n2: in-tree +290 ({TAINT} +300, {FIT} -10), "
        "Moorage -150 (B -112, A -38)"
    )


def test_a_tie_is_no_victory() -> None:
    made = scored(node("n1", 0, fit=9), node("n2", 0, fit=9), equals=1)
    assert why(BOUND, made, None) == (
        "as many points as n2, taken at random; Moorage finds both alike"
    )
    unscored = scored(node("n1", None, fit=9), node("n2", None, fit=9), equals=4)
    assert why(BOUND, unscored, None) == "as many points as 4 others; Moorage gave no scores"
    apart = scored(node("n1", 0, fit=40), node("n2", 30, fit=10), node("n2", 30, fit=10), equals=1)
    assert why(BOUND, apart, None) == (
        f"as many points as n2, which Moorage prefers: in-tree {FIT} +30, Moorage -30; "
        "taken at random"
    )


def test_a_difference_that_rounding_hid_is_told() -> None:
    made = scored(node("n1", 1050, fit=30), node("n2", 1050, fit=20))
    asked = gateway(scale=10, tied=1, n2=(74.4, 74.4), n1=(70.8, 70.8))
    assert why(BOUND, made, asked) == (
        f"beats n2 by 10: in-tree {FIT} +10; Moorage's best was n2, 74.4 to 70.8, tied after "
        "rounding to 10 steps: raise scoreScale to 100"
    )
    lucky = gateway(scale=100, tied=3, n1=(74.4, 74.4), n2=(74.3, 74.3))
    assert why(BOUND, made, lucky).endswith("; tied with 3 others after rounding")


@pytest.mark.parametrize(
    ("scale", "taint", "best", "cure"),
    [
        (100, 90, "n2", "raise scoreScale to 1000"),  # 2 steps of 20 points, beside 30
        (100, 85, "n2", "Moorage's lead of n2 is 0.2 of 100; spread the scores in `normalize`"),
        (100, 90, "n3", "Moorage's lead of n3 is 0.2 of 100; spread the scores in `normalize`"),
        (1000, 99, "n2", "Moorage's lead of n2 is 0.2 of 100; spread the scores in `normalize`"),
    ],
)
def test_a_finer_scale_is_advised_only_if_the_better_node_would_win(
    scale: int, taint: int, best: str, cure: str
) -> None:
    made = scored(node("n1", 1050, fit=20), node("n2", 1050, fit=20, taint=taint))
    nodes = {best: (74.3, 74.3), "n1": (74.1, 74.1)}
    asked = gateway(scale=scale, tied=1, **nodes)
    assert why(BOUND, made, asked).endswith(f"tied after rounding to {scale} steps: {cure}")


def test_a_deleted_pod_was_preempted_only_if_kube_scheduler_has_marked_it() -> None:
    gone = replace(BOUND, outcome=Outcome.DELETED)
    assert why(gone, None, None) == "by a client or by what made it"
    assert why(replace(gone, preempted=True), None, None) == "preempted for a more important pod"


def test_a_claim_is_no_choice_of_kube_scheduler() -> None:
    claim = {"claim": {"node": "n1", "plugins": ["OnePerRun"]}}
    made = scheduler(offered=3, accepted=1)
    assert why(BOUND, made, {**gateway(n1=(80, 80), n2=(60, 80)), **claim}) == (
        "claimed for OnePerRun, one of 3 feasible nodes; Moorage prefers it to n2 (A +5)"
    )


def test_who_rejected_nodes_is_named_though_others_were_left() -> None:
    beaten = scored(node("n1", 150, fit=0), node("n2", 0, fit=0))
    some = {**beaten, "offered": 5, "rejected": [rejecting("NodeAffinity", elsewhere=1)]}
    assert why(BOUND, some, rejected(MaxTemperature={"too hot": 2})).endswith(
        "; in-tree NodeAffinity rejected 1, Moorage MaxTemperature rejected 2"
    )


def test_the_only_feasible_node_is_explained_by_who_rejected_the_others() -> None:
    made = scheduler(nodes=6, rejected=[rejecting(FIT, cpu=2), rejecting("NodeAffinity", a=1)])
    assert why(BOUND, made, rejected(NodeGroup={"other group": 2})) == (
        f"the only feasible node: in-tree {FIT} rejected 2, in-tree NodeAffinity rejected 1, "
        "Moorage NodeGroup rejected 2"
    )
    assert why(BOUND, scheduler(nodes=1, offered=1), None) == "the only node"
    held = scheduler(nominated=True, offered=1)
    assert why(BOUND, held, None) == "the node that was nominated for it, so no other was tried"


def test_a_record_of_the_gateway_that_does_not_add_up_is_not_shown() -> None:
    assert why(BOUND, scheduler(), rejected(NodeGroup={"other group": 1})) == (
        "the only feasible node: Moorage rejected 2"
    )


def test_failures_are_told_though_the_pod_is_bound() -> None:
    failing = {"plugin": "E", "failure": "ValueError: no (e.py:3)"}
    asked = {"score": {"plugins": [failing]}, "scoreError": "no scorer is there"}
    made = scored(node("n1", None, fit=50), node("n2", None, fit=20))
    assert why(BOUND, made, asked).endswith(
        "; E failed: ValueError: no (e.py:3); no scores: no scorer is there"
    )


def test_a_pending_pod_is_explained_by_plugins_reasons_and_what_comes_next() -> None:
    nowhere = scheduler(node="", offered=2, accepted=0, rejected=[rejecting(FIT, no_cpu=1)])
    asked = rejected(NodeGroup={"other group": 1, "no label": 1})
    assert why(PENDING, nowhere, asked) == (
        f"in-tree {FIT} rejected 1: no cpu, Moorage NodeGroup rejected 2 (1 other group, "
        "1 no label); tried again when the cluster changes, at the latest after 5 min"
    )
    alone = scheduler(node="", offered=0, accepted=0, rejected=[rejecting(FIT, cpu=2, memory=1)])
    assert why(PENDING, alone, asked) == (
        f"in-tree {FIT} rejected 3 (2 cpu, 1 memory), Moorage was not asked; "
        "tried again when a change may help, at the latest after 5 min"
    )
    forgotten = scheduler(node="", offered=3, accepted=0)
    assert why(PENDING, forgotten, None).startswith("Moorage rejected 3; 0/3 nodes: full.; tried")
    sampled = scheduler(node="", nodes=9, offered=2, accepted=0)
    assert ", 7 nodes were not tried this time; " in why(PENDING, sampled, asked)
    assert why(PENDING, None, None) == "0/3 nodes: full."
    assert why(PodState(namespace="ns", name="p", uid="u"), None, None) == "not tried yet"


def test_a_preemption_that_failed_is_told() -> None:
    problem = "0/3 nodes are available: 3 full. preemption: Post http://x: EOF"
    pending = PodState(
        namespace="ns", name="p", uid="u", outcome=Outcome.UNSCHEDULABLE, problem=problem
    )
    nowhere = scheduler(node="", offered=0, accepted=0, rejected=[rejecting(FIT, full=3)])
    assert "; preemption: Post http://x: EOF; " in why(pending, nowhere, None)


def test_an_error_is_all_that_is_shown_of_a_pod_that_could_not_be_tried() -> None:
    failing = PodState(namespace="ns", name="p", uid="u", outcome=Outcome.FAILING, problem="EOF")
    assert why(failing, scheduler(node="", offered=2), None) == "EOF"


def test_a_decision_that_is_not_about_this_pod_explains_nothing() -> None:
    unknown = "bound without kube-scheduler, or it has forgotten the decision"
    assert why(BOUND, None, gateway(n1=(1, 1))) == unknown
    assert why(BOUND, {**scheduler(), "uid": "of an earlier pod"}, None) == unknown
    elsewhere = {**scheduler(), "node": "n2"}
    assert why(BOUND, elsewhere, None) == "kube-scheduler's newest decision is not this one (n2)"
