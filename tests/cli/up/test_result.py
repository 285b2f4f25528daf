"""Which pods of a large workload are shown, and the summary of all."""

from collections.abc import Sequence

from cli.up.following import Outcome, PodState
from cli.up.result import most_interesting, spread, totals


def pod(name: str, outcome: Outcome = Outcome.BOUND, problem: str = "") -> PodState:
    node = "n" if outcome is Outcome.BOUND else ""
    return PodState(namespace="d", name=name, uid=name, outcome=outcome, node=node, problem=problem)


def unschedulable(name: str, problem: str) -> PodState:
    return pod(name, Outcome.UNSCHEDULABLE, f"0/9 nodes are available: {problem}. preemption: no")


def shown(pods: Sequence[PodState], count: int) -> list[list[str]]:
    return [[each.name for each in group] for group in most_interesting(pods, count)]


def test_failures_come_first_then_pending_pods_and_a_sample_of_all_others() -> None:
    pods = [
        *(pod(f"bound-{i}") for i in range(100)),
        pod("waiting", Outcome.WAITING),
        pod("gone", Outcome.DELETED),
        unschedulable("p-1", "9 b"),
        unschedulable("p-2", "9 a"),
        unschedulable("p-3", "9 a"),
        pod("fails", Outcome.FAILING, "boom"),
    ]
    found = shown(pods, 20)
    assert found[:4] == [["fails"], ["p-2", "p-3"], ["p-1"], ["gone"]]
    assert len(found) == 20
    assert all(name.startswith("bound-") for (name,) in found[4:])
    assert found[4] == ["bound-0"]
    assert int(found[-1][0].removeprefix("bound-")) > 80  # from all of them, not the first ones


def test_pods_that_were_not_tried_come_last() -> None:
    pods = [pod("waiting", Outcome.WAITING), pod("bound"), unschedulable("p", "9 a")]
    assert shown(pods, 3) == [["p"], ["bound"], ["waiting"]]


def test_pods_with_the_same_problem_are_together_whatever_the_number_of_nodes() -> None:
    pods = [
        unschedulable("a", "1 too hot, 8 too small"),
        unschedulable("b", "7 too small, 2 too hot"),
        unschedulable("c", "9 too hot"),
    ]
    assert shown(pods, 2) == [["a", "b"], ["c"]]


def test_the_summary_counts_pods_and_says_how_they_are_spread() -> None:
    bound = [
        PodState(namespace="d", name=n, uid=n, outcome=Outcome.BOUND, node=node)
        for n, node in (("a", "n1"), ("b", "n1"), ("c", "n2"))
    ]
    pods = [*bound, pod("w", Outcome.WAITING), pod("g", Outcome.DELETED), unschedulable("p", "x")]
    assert totals(pods) == "3 of 6 pods bound, 1 pending, 1 not decided yet, 1 deleted"
    assert list(spread(pods, 5, 1.5)) == [
        "1.5 s (2 pods/s); 2 of 5 nodes used, 1 to 2 pods on each, 1.5 on average"
    ]
    assert list(spread(bound[1:], 5, 0)) == ["0.0 s; 2 of 5 nodes used, 1 pod on each"]
    assert list(spread([pod("w", Outcome.WAITING)], 5, 1.5)) == []
