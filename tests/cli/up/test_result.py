"""Which pods are shown, the line that says why, and the summary of all."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from cli.up.following import PodProgress, PodState
from cli.up.result import shown, totals, why
from gateway.cycle.decision import Decision
from gateway.decisions.explanation import Explanation


def pod(name: str, outcome: PodProgress = PodProgress.BOUND, problem: str = "") -> PodState:
    node = "n" if outcome is PodProgress.BOUND else ""
    return PodState(namespace="d", name=name, uid=name, outcome=outcome, node=node, problem=problem)


def unschedulable(name: str, problem: str) -> PodState:
    return pod(
        name, PodProgress.UNSCHEDULABLE, f"0/9 nodes are available: {problem}. preemption: no"
    )


def test_the_summary_counts_pods() -> None:
    bound = [
        PodState(namespace="d", name=n, uid=n, outcome=PodProgress.BOUND, node=node)
        for n, node in (("a", "n1"), ("b", "n1"), ("c", "n2"))
    ]
    pods = [
        *bound,
        pod("w", PodProgress.WAITING),
        pod("g", PodProgress.DELETED),
        unschedulable("p", "x"),
    ]
    assert totals(pods) == "3 of 6 pods bound, 1 pending, 1 not decided yet, 1 deleted"


def test_of_many_pods_failures_come_first_and_what_was_not_tried_last() -> None:
    some = [
        pod("waits", PodProgress.WAITING),
        pod("bound"),
        pod("gone", PodProgress.DELETED),
        unschedulable("full", "9 full"),
        pod("unserved", PodProgress.UNSERVED),
        pod("fails", PodProgress.FAILING),
    ]
    assert shown(some) == (some, 0)
    more = [pod(f"bound-{i}") for i in range(20)]
    found, rest = shown([*some, *more])
    names = ["fails", "unserved", "full", "gone", "bound", *(f"bound-{i}" for i in range(15))]
    assert ([each.name for each in found], rest) == (names, 6)
    found, rest = shown([*some, *more[:14]])
    assert (found[-1].name, rest) == ("bound-13", 0)
    found, rest = shown([*some, *more[:15]])
    assert ("waits" in {each.name for each in found}, rest) == (False, 1)


Answer = Mapping[str, Any]

BOUND = PodState(namespace="ns", name="p", uid="u", outcome=PodProgress.BOUND, node="n1")
PENDING = PodState(
    namespace="ns", name="p", uid="u", outcome=PodProgress.UNSCHEDULABLE, problem="0/3 nodes: full."
)
FIT = "NodeResourcesFit"
TAINT = "TaintToleration"
RETRIED = "kube-scheduler tries it again when the cluster changes"


def explained(reason: str, *why: str, steps: tuple[str, ...] = ()) -> Explanation:
    """What the gateway answers."""
    now = datetime.now(UTC)
    attempt = Decision(namespace="ns", pod="p", uid="u", time=now, profile="m", why=list(why))
    return Explanation(pod="ns/p", place="", reason=reason, next=steps, attempts=(attempt,))


def scheduler(**more: Any) -> Answer:
    """What the stand-in for kube-scheduler decided: by default, for the only feasible node."""
    return {"uid": "u", "node": "n1", "nominated": False, "rejected": [], "scores": None, **more}


def node(name: str, fit: int, taint: int = 100) -> dict[str, Any]:
    plugins = [
        {"plugin": FIT, "score": fit, "weight": 1},
        {"plugin": TAINT, "score": taint, "weight": 3},
    ]
    return {"node": name, "inTree": fit + 3 * taint, "plugins": plugins}


def scored(
    chosen: Answer, other: Answer, preferred: Answer | None = None, equals: int = 0
) -> Answer:
    scores = {"chosen": chosen, "runnerUp": other, "preferred": preferred, "equals": equals}
    return scheduler(scores=scores)


@pytest.mark.parametrize(
    ("made", "more"),
    [
        (scheduler(), ""),
        (scored(node("n1", fit=50), node("n2", fit=50)), ""),
        (
            scored(node("n1", fit=20, taint=90), node("n2", fit=50)),
            f"; in-tree scores prefer n2 to n1 by 60 ({FIT} +30, {TAINT} +30)",
        ),
        (
            scored(node("n1", fit=40), node("n3", fit=0), node("n2", fit=50, taint=0)),
            f"; in-tree scores prefer n1 to n2 by 290 ({TAINT} +300, {FIT} -10)",
        ),
        (
            scored(node("n1", fit=9), node("n2", fit=9), equals=1),
            "; as many points in all as n2, taken at random",
        ),
        (
            scored(node("n1", fit=9), node("n2", fit=9), equals=4),
            "; as many points in all as 4 others, taken at random",
        ),
        (
            scheduler(rejected=[{"plugin": FIT, "nodes": 2, "reasons": {"cpu": 2}}]),
            f"; in-tree {FIT} rejected 2",
        ),
        (
            scheduler(nominated=True),
            "; the node was nominated for it, so no other was tried",
        ),
        ({**scheduler(nominated=True), "uid": "of an earlier pod"}, ""),
        ({**scheduler(nominated=True), "node": "n2"}, ""),
        (None, ""),
    ],
)
def test_in_tree_plugins_are_added_to_the_gateway_s_sentence(
    made: Answer | None, more: str
) -> None:
    assert why(BOUND, made, explained("Moorage prefers n1 to n2")) == (
        f"Moorage prefers n1 to n2{more}"
    )


def test_failures_and_rejections_are_told_though_the_pod_is_bound() -> None:
    failure = "A failed: ValueError: no (e.py:3)"
    reason = f"gave no scores since {failure}"
    told = ("B failed: no data", "Cool rejected 1 of 3 nodes: hot")
    asked = explained(reason, reason, failure, told[0], "Moorage prefers n1", told[1])
    assert why(BOUND, None, asked) == "; ".join((reason, *told))


def test_a_pending_pod_is_explained_with_what_comes_next() -> None:
    asked = explained("none of 3 nodes suits it: 3 hot", steps=("cool them", RETRIED))
    made = scheduler(node="", rejected=[{"plugin": FIT, "nodes": 1, "reasons": {}}])
    assert why(PENDING, made, asked) == f"none of 3 nodes suits it: 3 hot; {RETRIED}"


def test_without_the_gateway_there_is_kube_scheduler_s_message() -> None:
    assert why(PENDING, None, None) == "0/3 nodes: full."
    assert why(PodState(namespace="ns", name="p", uid="u"), None, None) == "not tried yet"
    assert why(BOUND, scheduler(), None, "the gateway is busy") == "the gateway is busy"
    deleted = structs.replace(explained("it was bound to n1: Moorage prefers n1"), place="is gone")
    assert why(PENDING, None, deleted) == "it was deleted since"


def test_a_deleted_pod_was_preempted_only_if_kube_scheduler_has_marked_it() -> None:
    gone = replace(BOUND, outcome=PodProgress.DELETED)
    assert why(gone, None, None) == "by a client or by what made it"
    assert why(replace(gone, preempted=True), None, None) == "preempted for a more important pod"
