"""The built-in bind plugins: the decision is written onto pods, groups are bound whole."""

import json
from typing import Any

import pytest

from moorage import Allow, Binding, DecisionSummary, Nodes, Pod, Refusal, ScoredNode, Wait
from moorage.groups import POD_GROUP, POD_GROUPS, PODS, PODS_OF_POD_GROUPS
from moorage.testing import make_binding, make_node, make_nodes, make_pod, run_permit, run_pre_bind
from services.binder.plugins.decision_annotation import KEY, DecisionAnnotation
from services.binder.plugins.gang_permit import GangPermit

DECISION = DecisionSummary(
    winner=ScoredNode(
        node="n2", score=79.625, plugins={"A": 100.0, "B": 66.666, "C": 12.0, "D": 1.0}
    ),
    runner_up=ScoredNode(node="n1", score=70.0, plugins={"A": 90.0}),
    reason="Moorage prefers n2 to n1, 79.62 to 70: A +9.62",
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
        "reason": "Moorage prefers n2 to n1, 79.62 to 70: A +9.62",
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


@pytest.mark.parametrize("length", [1, 90, 253, 900])
@pytest.mark.parametrize("reason", ["", "why", "because " * 200, "\N{SNOWMAN}" * 300])
@pytest.mark.parametrize("max_bytes", [1023, 300, 1])
def test_it_stays_small_however_long_names_and_reasons_are(
    length: int, reason: str, max_bytes: int
) -> None:
    scored = ScoredNode(
        node="n" * length,
        score=50.0,
        plugins={f"{number}{'x' * length}": 50.0 for number in range(20)},
    )
    decision = DecisionSummary(winner=scored, runner_up=scored, reason=reason, nodes=5000)
    written = annotation(decision, plugins=20, max_bytes=max_bytes)
    assert len((written or "").encode()) <= max_bytes
    if length <= 253 and max_bytes == 1023:
        assert written is not None
        shown = json.loads(written)
        assert (shown["winner"]["node"], shown["runnerUp"]["node"]) == (scored.node, scored.node)


def test_what_is_not_known_of_a_decision_is_left_out() -> None:
    unscored = DecisionSummary(winner=ScoredNode(node="n2"), nodes=1, feasible=1)
    assert annotation(None) is None
    assert annotation(unscored) == '{"winner":{"node":"n2"},"nodes":1,"feasible":1}'


def test_a_short_reason_goes_before_the_scores_of_plugins() -> None:
    names = {f"{number}{'x' * 200}": 50.0 for number in range(20)}
    winner = ScoredNode(node="n2", score=50.0, plugins=names)
    written = annotation(DecisionSummary(winner=winner, reason="why"), plugins=20)
    assert written is not None
    shown = json.loads(written)
    assert (shown["reason"], len(shown["winner"]["plugins"])) == ("why", 4)


def cluster(*manifests: dict[str, Any], min_member: int = 0) -> Nodes:
    group = {"metadata": {"namespace": "default", "name": "a", "uid": "a"}}
    given = [{**group, "spec": {"minMember": min_member}}] if min_member else []
    kind = PODS_OF_POD_GROUPS if min_member else PODS
    objects = {PODS: [], PODS_OF_POD_GROUPS: [], POD_GROUPS: given, kind: manifests}
    return make_nodes(make_node("n1"), objects=objects)


def labels(size: str) -> dict[str, str]:
    return {"moorage.io/group": "a", "moorage.io/group-size": size}


def manifest(name: str, node: str = "", **told: str) -> dict[str, Any]:
    """Return a pod as the API server has it."""
    uid = make_pod(name).uid
    metadata = {"namespace": "default", "name": name, "uid": uid, "labels": told or labels("2")}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"name": "c"}]}}


def binding(name: str, nodes: Nodes, size: str = "2", **told: str) -> Binding:
    pod: Pod = make_pod(name, labels=told or labels(size))
    return make_binding(pod, "n1", nodes=nodes)


def test_a_group_goes_on_once_enough_of_it_have_come() -> None:
    nodes = cluster(manifest("x"), manifest("y"))
    first, second = binding("x", nodes), binding("y", nodes)
    assert run_permit(GangPermit(), first) == Wait(2.0, "2 pods of group default/a")
    assert run_permit(GangPermit(), second, first) == Allow()


def test_pods_wait_for_half_as_long_while_the_oldest_one_of_the_group_is_missing() -> None:
    nodes = cluster(manifest("x"), manifest("y"))
    assert run_permit(GangPermit(), binding("y", nodes)) == Wait(1.0, "2 pods of group default/a")


def test_pods_that_are_bound_count_and_pods_that_only_hold_a_node_do_not() -> None:
    bound, held = cluster(manifest("x", "n1")), cluster(manifest("x"))
    assert run_permit(GangPermit(), binding("y", bound)) == Allow()
    assert isinstance(run_permit(GangPermit(), binding("y", held)), Wait)


def test_a_pod_group_says_how_many_are_enough() -> None:
    told = {POD_GROUP: "a"}
    nodes = cluster(manifest("x", **told), manifest("y", **told), min_member=2)
    first, second = binding("x", nodes, **told), binding("y", nodes, **told)
    assert isinstance(run_permit(GangPermit(), first), Wait)
    assert run_permit(GangPermit(), second, first) == Allow()


def test_a_group_that_contradicts_itself_is_refused() -> None:
    nodes = cluster(manifest("x", **labels("2")), manifest("y", **labels("3")))
    refused = run_permit(GangPermit(), binding("x", nodes))
    assert refused == Refusal("pods of the group say different sizes")


def test_other_pods_are_bound_at_once() -> None:
    alone = make_binding(make_pod("z"), "n1", nodes=cluster())
    assert run_permit(GangPermit(), alone) == Allow()
