"""What a decision shows about who decided, and about one node."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.cycle.decision import (
    BindRecord,
    ClaimRecord,
    Decision,
    NodeScoreRecord,
    PluginScoreRecord,
    ScoreRecord,
)
from gateway.decisions.sentences import reason, sentences
from moorage import FilterPlugin, Node, Pod, Rejection, ScorePlugin
from sandbox.apiserver.resources.table import parse
from tests.gateway.decisions.test_why import attempt
from tests.gateway.sharing import sharing
from tools.inprocess.gateway import Gateway, pod, policy_of
from tools.waiting import until

HERE = "tests/gateway/decisions/test_explaining.py"
POLICY = policy_of("{multiPoint: {enabled: [{name: NoThird}, {name: Given}]}}")
NAMES = ("n0", "n1", "n2", "n3")
TOTALS = {"n0": 70.9, "n1": 74.4, "n2": 20.0}


class NoThird(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection("it is the third") if node.name == "n3" else None


class Given(ScorePlugin):
    def score_node(self, pod: Pod, node: Node) -> float:
        return TOTALS.get(node.name, 0.0)


class NoLabel(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection(node.labels["example.com/rack"])


class NoGpu(ScorePlugin):
    def score_node(self, pod: Pod, node: Node) -> float:
        return float(node.allocatable["example.com/gpu"])


async def decided(running: Gateway) -> tuple[list[Any], Any]:
    await running.node(*NAMES)
    feasible = (await running.filter(pod(), *NAMES))["NodeNames"]
    scores = await running.prioritize(pod(), *feasible)
    _, answer = await running.get("/decisions/default/p")
    return scores, answer["attempts"][0]


async def test_a_tie_that_rounding_made_is_in_the_decision(tmp_path: Path) -> None:
    policy = POLICY.replace("scoreScale: 100", "scoreScale: 10")
    async with sharing(tmp_path, NoThird, Given, policy=policy) as running:
        scores, decision = await decided(running)
        placed = running.api.pod("q", schedulerName="moorage", nodeName="n1")
        await running.filter(placed, *NAMES)
        await running.prioritize(placed, *NAMES[:3])
        _, n0 = await running.get("/decisions/default/q?node=n0")
    assert {each["Host"]: each["Score"] for each in scores} == {"n0": 7, "n1": 7, "n2": 2}
    assert (decision["score"]["scale"], decision["score"]["tied"]) == (10, 1)
    assert decision["why"] == [
        (
            "n1 is tied with 1 other after rounding to 10 steps, so kube-scheduler saw them alike: "
            "a lead of 3.5 of 100, at scoreScale 100 worth 3 x 10 x the extender's weight"
        ),
        "Moorage prefers n1 to n0, 74.4 to 70.9: Given +3.5",
        "NoThird rejected 1 of 4 nodes: it is the third",
    ]
    assert decision["reason"] == decision["why"][0]
    assert n0["reason"] == (
        "it is Moorage's number 2, 70.9; n1 has 74.4, a tie after rounding to 10 steps"
    )


async def test_plugins_that_failed_are_in_the_decision(tmp_path: Path) -> None:
    policy = policy_of(
        "{multiPoint: {enabled: [{name: NoLabel}, {name: NoGpu}]}}",
        "{name: NoLabel, failurePolicy: Ignore}",
    )
    async with sharing(tmp_path, NoLabel, NoGpu, policy=policy) as running:
        _, decision = await decided(running)
    for name, key in (("NoLabel", "example.com/rack"), ("NoGpu", "example.com/gpu")):
        told = f"{name} failed: KeyError: '{key}' for node n0 ({HERE}:"
        assert any(line.startswith(told) for line in decision["why"]), decision["why"]


CLAIMED = "claimed for P, so kube-scheduler is offered no other node"


def scored(*totals: float, scale: int = 100, bound: str = "n1", claim: str = "") -> Decision:
    """A decision about n0, n1 and so on, whose totals are a single plugin's scores."""
    top = [
        NodeScoreRecord(
            node=f"n{i}",
            total=total,
            plugins=[PluginScoreRecord(plugin="P", raw=total, normalized=total, weight=1)],
        )
        for i, total in enumerate(totals)
    ]
    return Decision(
        namespace="default",
        pod="p",
        uid="u",
        time=datetime.now(UTC),
        profile="moorage",
        score=ScoreRecord(nodes=len(top), seconds=0.0, top=top, scale=scale),
        claim=ClaimRecord(node=claim, plugins=["P"]) if claim else None,
        bind=BindRecord(node=bound, seconds=0.0),
    )


@pytest.mark.parametrize(
    ("decision", "first"),
    [
        (
            scored(90, 80, bound="n9"),
            (
                "kube-scheduler chose n9, whose total is not kept: it is not among Moorage's best "
                "2, of which n0 is the first, 90"
            ),
        ),
        (
            scored(90, 90, scale=0, claim="n1"),
            f"n1 was drawn among 2 nodes that tie for Moorage's best total, 90; {CLAIMED}",
        ),
        (
            scored(90, 80, scale=0, bound="n0", claim="n0"),
            f"Moorage prefers n0 to n1, 90 to 80: P +10; {CLAIMED}",
        ),
    ],
)
def test_who_decided_is_named_only_if_the_record_proves_it(decision: Decision, first: str) -> None:
    assert reason(decision) == sentences(decision)[0] == first


def test_a_node_beyond_the_best_ones_is_judged_by_its_own_total() -> None:
    chosen = {"n9": 90.0, "n8": 60.0}.get
    assert reason(scored(90, 90, bound="n9"), total_of=chosen) == (
        "kube-scheduler chose n9 among 2 nodes that tie for Moorage's best total, 90"
    )
    assert reason(scored(90, 90, bound="n8"), total_of=chosen).startswith(
        "kube-scheduler's own scores outvoted Moorage's: it chose n8, 60, over n0, 90, "
    )
    assert "outvoted" not in reason(scored(90, 90, bound="n7"), total_of=chosen)


COOL = "Cool rejected 3 of"
HOT = "2 node is too hot, 1 no sensor"
TOO_HOT = {"no sensor": 1, "node is too hot": 2}


@pytest.mark.parametrize(
    ("decision", "shown"),
    [
        (attempt(Cool=TOO_HOT), [f"no node suits it: {COOL} 3: {HOT}"]),
        (attempt(1, Cool=TOO_HOT), [f"one node of 4 was left: {COOL} 4: {HOT}"]),
        (
            attempt(2, Cool=TOO_HOT),
            [
                "kube-scheduler chose among 2 nodes: Moorage gave no scores",
                f"{COOL} 5 nodes: {HOT}",
            ],
        ),
        (
            attempt(Cool={"node is too hot": 2}, Near={"no zone": 1, "too far": 2}),
            [
                "no node suits it: Near rejected 3 of 5: 2 too far, 1 no zone (other plugins 2)",
                "Near rejected 3 of 5 nodes: 2 too far, 1 no zone",
                "Cool rejected 2 of 5 nodes: node is too hot",
            ],
        ),
    ],
)
def test_rejections_are_named_first_if_no_score_decided(
    decision: Decision, shown: list[str]
) -> None:
    assert sentences(decision) == shown


async def test_one_node_of_a_decision_is_shown(tmp_path: Path) -> None:
    async with sharing(tmp_path, NoThird, Given, policy=POLICY) as running:
        _, decision = await decided(running)
        await running.node("n4")
        seen = {}
        for name in ("n0", "n3", "n4"):
            _, answer = await running.get(f"/decisions/default/p?node={name}")
            (seen[name],) = answer["views"]
        code, nowhere = await running.get("/decisions/default/p?node=nowhere")
        assert (code, nowhere["error"]) == (404, "there is no node nowhere")
    assert "tied" not in decision["score"]
    assert (seen["n0"]["verdict"], seen["n0"]["rank"]) == ("feasible", 2)
    assert seen["n0"]["score"]["plugins"][0]["normalized"] == pytest.approx(70.9)
    assert (seen["n3"]["verdict"], seen["n3"]["plugin"]) == ("rejected", "NoThird")
    assert (seen["n3"]["reason"], seen["n3"]["unresolvable"]) == ("it is the third", True)
    assert seen["n4"]["verdict"] == "unknown"


def show_rejected(running: Gateway, name: str, message: str) -> None:
    """Have a pod show what kube-scheduler says of an attempt."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    path = f"/api/v1/namespaces/default/pods/{name}"
    status = {"conditions": [{**condition, "message": message}]}
    running.api.server.cluster.update(
        parse(f"{path}/status"), {**running.api.read(path), "status": status}
    )


@pytest.mark.parametrize(
    ("spec", "status", "hint"),
    [
        (
            {"schedulerName": "other"},
            {},
            "its schedulerName is other, which no profile serves (profiles: moorage)",
        ),
        (
            {"schedulerName": "moorag"},
            {},
            "its schedulerName is moorag, which no profile serves, did you mean `moorage`?",
        ),
        ({}, {}, "kube-scheduler has not tried it yet; does one with this profile run?"),
        (
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]},
            {},
            "see whether its ResourceClaims exist, which the gateway may not read: shared",
        ),
        (
            {},
            {"reason": "Unschedulable", "message": "0/2 nodes are available: 2 full. no more"},
            (
                "kube-scheduler says 0/2 nodes are available: 2 full; its own filters left no "
                "node, or the gateway restarted since"
            ),
        ),
    ],
)
async def test_a_missing_decision_is_explained_by_the_pod(
    tmp_path: Path, spec: Any, status: Any, hint: str
) -> None:
    async with sharing(tmp_path, NoThird, Given, policy=POLICY) as running:
        await running.node(*NAMES)
        running.api.pod("big", **{"schedulerName": "moorage", **spec})
        if status:
            show_rejected(running, "big", status["message"])
        code, answer = await running.get("/decisions/default/big")
        assert (code, answer["attempts"], answer["whyNoAttempt"]) == (200, [], hint)
        told = status.get("message", hint).partition(". ")[0].partition(": ")[2] or hint
        assert told in answer["reason"]
        code, nobody = await running.get("/decisions/default/nobody")
        assert (code, nobody["error"]) == (404, "there is no pod default/nobody")


async def test_the_gateway_explains_a_pod_by_its_own_decisions_alone(tmp_path: Path) -> None:
    async with sharing(tmp_path, NoThird, Given, policy=POLICY) as running:
        await running.node(*NAMES)
        first = running.api.pod("p", schedulerName="moorage", nodeName="n0")
        await running.filter(first, *NAMES)
        await running.prioritize(first, *NAMES[:3])
        _, answer = await running.get("/decisions/default/p?node=n3")
        assert [each["verdict"] for each in answer["views"]] == ["rejected"]
        assert answer["reason"].startswith("NoThird rejected it: it is the third")
        _, answer = await running.get("/decisions/default/p")
        assert (answer["place"], answer["reason"]) == (
            "is on n0",
            (
                "kube-scheduler's own scores outvoted Moorage's: it chose n0, 70.9, over n1, 74.4, "
                "a lead of 3 x 10 x the extender's weight"
            ),
        )
        assert answer["policyRevision"] == answer["attempts"][0]["policyRevision"]

        running.api.delete("/api/v1/namespaces/default/pods/p")
        running.api.pod("p", schedulerName="moorage")
        _, answer = await running.get("/decisions/default/p")
        assert answer["attempts"] == []  # those are of an earlier pod of the name
        assert "kube-scheduler has not tried it yet" in answer["reason"]
        assert (await running.get("/decisions/default/p?explain=true"))[0] == 400


async def test_all_pending_pods_are_listed_with_their_first_line(tmp_path: Path) -> None:
    async with sharing(tmp_path, NoThird, Given, policy=POLICY) as running:
        await running.node("n3")
        rejected = running.api.pod("rejected", schedulerName="moorage")
        await running.filter(rejected, "n3")
        show_rejected(running, "rejected", "0/1 nodes are available: 1 it is the third. no more")
        running.api.pod("gated", schedulingGates=[{"name": "quota"}])
        running.api.pod("mistyped", schedulerName="morage")
        running.api.pod("placed", schedulerName="moorage", nodeName="n3")
        spec = {"containers": [{"name": "main", "image": "nginx"}]}
        names = {"name": "elsewhere", "namespace": "shop"}
        shop = {"apiVersion": "v1", "kind": "Pod", "metadata": names, "spec": spec}
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        running.api.create("/api/v1/namespaces", space)
        running.api.create("/api/v1/namespaces/shop/pods", shop)

        async def listed(query: str = "") -> Any:
            return (await running.get(f"/decisions/pending{query}"))[1]

        async def seen() -> bool:
            answer = await listed()
            return answer["pods"] == 4 and all(each["reason"] for each in answer["items"])

        await until(seen)
        lines = {each["pod"]: each for each in (await listed())["items"]}
        assert set(lines) == {
            *(f"default/{name}" for name in ("rejected", "gated", "mistyped")),
            "shop/elsewhere",
        }
        for name, line in lines.items():
            _, alone = await running.get(f"/decisions/{name}")
            assert {**line, "attempts": alone["attempts"], "events": alone["events"]} == alone
        assert "1 it is the third (Moorage NoThird)" in lines["default/rejected"]["reason"]
        assert lines["default/rejected"]["tried"] == 1
        assert "schedulerName is morage" in lines["default/mistyped"]["reason"]
        assert "did you mean `moorage`?" in lines["default/mistyped"]["reason"]
        one = await listed("?limit=1")
        assert (len(one["items"]), one["pods"]) == (1, 4)
        assert [each["pod"] for each in (await listed("?namespace=shop"))["items"]] == [
            "shop/elsewhere"
        ]
        for search, waits, placed in (
            ("third", ["default/rejected"], []),  # the reason
            (
                "default/+ED",
                ["default/rejected", "default/gated", "default/mistyped"],
                ["default/placed"],
            ),
            ("elsewhere", ["shop/elsewhere"], []),
        ):
            answer = await listed(f"?search={search}")
            assert {each["pod"] for each in answer["items"]} == set(waits)
            assert [each["pod"] for each in answer["placed"]] == placed
            assert all(each["node"] == "n3" for each in answer["placed"])
        assert (await running.get("/decisions/pending?limit=0"))[0] == 400
