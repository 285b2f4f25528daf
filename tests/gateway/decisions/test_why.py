"""Why a pod is where it is, alone or in a group."""

from datetime import datetime
from typing import Any

import msgspec
import pytest

from gateway.cluster.pods import decode_seen_pod
from gateway.cycle.decision import (
    UNKNOWN_NODE,
    BindRecord,
    Decision,
    FilterRecord,
    GroupRecord,
    PluginRecord,
    ReasonCount,
)
from gateway.decisions.advice import advice
from gateway.decisions.explaining import as_shown
from gateway.decisions.explanation import (
    Explanation,
    Obstacle,
    PodEvidence,
    RejectedNodes,
    Survey,
    why_no_attempt,
)
from gateway.decisions.nodes import NodeView
from gateway.decisions.rejections import NO_NODE_LEFT
from gateway.decisions.sentences import group_evidence, group_sentence, group_steps
from gateway.decisions.why import explain
from moorage.groups import ReasonNodes

AGO = "2026-11-23T01:00:00+00:00"


def pod(*, reason: str = "", message: str = "", **spec: Any) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "reason": reason, "message": message}
    return {
        "metadata": {"namespace": "ns", "name": "p", "uid": "u", "creationTimestamp": AGO},
        "spec": {"schedulerName": "moorage", **spec},
        "status": {"conditions": [{**condition, "lastTransitionTime": AGO}] if reason else []},
    }


def decided(**more: Any) -> Decision:
    known = {"namespace": "ns", "pod": "p", "uid": "u", "time": datetime.fromisoformat(AGO)}
    return Decision(**{**known, "profile": "m", **more})


def attempt(
    feasible: int = 0, unknown: int = 0, *, more: dict[str, Any] | None = None, **plugins: Any
) -> Decision:
    """An attempt in which each plugin rejected so many nodes for each reason."""
    records = [
        PluginRecord(
            plugin=name,
            seconds=0.0,
            rejected=sum(reasons.values()),
            reasons=[
                ReasonCount(reason=text, nodes=count, unresolvable=False)
                for text, count in reasons.items()
            ],
        )
        for name, reasons in plugins.items()
    ]
    filtered = FilterRecord(
        nodes=feasible + unknown + sum(each.rejected for each in records),
        feasible=feasible,
        seconds=0.0,
        plugins=records,
        unknown_nodes=unknown,
    )
    return decided(**{"filter": filtered, "reason": "no node suits it: decided", **(more or {})})


def rejected(message: str, *attempts: Decision, **known: Any) -> Explanation:
    found = pod(reason="Unschedulable", message=message)
    return explain(PodEvidence(pod=found, attempts=attempts, **known))


@pytest.mark.parametrize(
    ("message", "asked", "parts"),
    [
        (
            "2 full, 1 busy. preemption: 0/3 nodes are available: 3 No victims.",
            attempt(Fit={"full": 2}),
            ["2 full (Moorage Fit)", "1 busy (kube-scheduler)"],
        ),
        (
            "1 Insufficient cpu, 2 no GPU, 4 wanted. Ask ops. preemption: no",
            attempt(Gpu={"no GPU, 4 wanted. Ask ops": 2}),
            ["2 no GPU, 4 wanted. Ask ops (Moorage Gpu)", "1 Insufficient cpu (kube-scheduler)"],
        ),
        (
            "3 Insufficient cpu.",
            attempt(Fit={"Insufficient cpu": 1}),
            ["2 Insufficient cpu (kube-scheduler)", "1 Insufficient cpu (Moorage Fit)"],
        ),
        (
            "3 no place.",
            attempt(One={"no place": 2}, Two={"no place": 1}),
            ["2 no place (Moorage One)", "1 no place (Moorage Two)"],
        ),
        (
            f"1 too hot, 2 {UNKNOWN_NODE}.",
            attempt(unknown=2, Cool={"too hot": 1}),
            [f"2 {UNKNOWN_NODE} (Moorage's gateway)", "1 too hot (Moorage Cool)"],
        ),
        (
            "3 hot.",  # the attempt that the message is about is another one
            attempt(Cool={"hot": 1, "humid": 2}),
            ["3 hot (Moorage Cool)"],
        ),
        (
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            attempt(),
            [f"3 {NO_NODE_LEFT} (kube-scheduler)"],
        ),
    ],
)
def test_each_reason_has_its_owner(message: str, asked: Any, parts: list[str]) -> None:
    found = rejected(f"0/3 nodes are available: {message}", asked)
    assert list(map(str, found.rejections)) == parts
    assert found.reason == f"none of 3 nodes suits it: {', '.join(parts)}"
    unasked = rejected("0/1 nodes are available: 1 hot.", why_no_attempt="it is gone", asked=False)
    assert unasked.reason == (
        "the only node does not suit it: 1 hot; who rejected them is not known: it is gone"
    )


def test_what_helps_is_said_of_the_most_frequent_reason() -> None:
    unknown = rejected(f"0/2 nodes are available: 2 {UNKNOWN_NODE}.", attempt(unknown=2))
    assert unknown.next[0] == "see /readyz of the gateway, which has not seen these nodes yet"
    full = rejected("0/2 nodes are available: 2 Insufficient cpu.")
    assert full.next[0] == "free cpu on a node, add a node, or lower the pod's requests of cpu"


def test_verdicts_that_may_be_wrong_by_now_are_told() -> None:
    old = attempt(Cool={"hot": 1}, more={"policy_revision": "a", "snapshot_age_seconds": 200.0})
    found = rejected("0/1 nodes are available: 1 hot.", old, revision="b")
    assert found.reason == (
        "the only node does not suit it: 1 hot (Moorage Cool); decided by policy a, and b is "
        "active since; the gateway had heard nothing of the cluster for 200 s then, see its /readyz"
    )
    assert found.next[0].startswith("wait: the gateway has it tried again")
    same = rejected("0/1 nodes are available: 1 hot.", old, revision="a")
    assert "policy" not in same.reason
    assert same.next[0].startswith("change the pod or a node to what Cool asks for")
    late = rejected("0/1 nodes are available: 1 hot.", old, revision="a", is_outdated=True)
    assert late.reason.endswith("; nodes have changed since that verdict")
    assert late.next[0].startswith("wait: the gateway has it tried again")


def test_a_pod_that_was_placed_against_a_rejection_says_so() -> None:
    why = {"reason": "no node suits it: Cool rejected 2 of 2: hot"}
    asked = attempt(Cool={"hot": 2}, more=why)
    found = explain(PodEvidence(pod=pod(nodeName="n1"), attempts=[asked]))
    assert found.headline == (
        "ns/p is on n1: it was placed without Moorage, which had rejected it: "
        "Cool rejected 2 of 2: hot"
    )
    view = NodeView(time=AGO, node="n1", verdict="rejected", plugin="Cool", reason="hot")
    about = explain(PodEvidence(pod=pod(nodeName="n1"), attempts=[asked], node="n1", views=[view]))
    assert about.headline == ("ns/p is on n1: Cool rejected it: hot; it was placed without Moorage")


def test_the_failure_is_that_of_the_condition_though_another_attempt_runs() -> None:
    failed = attempt(
        feasible=2,
        more={
            "bind": BindRecord(node="n1", seconds=0.0, error="permit: timed out"),
            "reason": "the bind to n1 failed: permit: timed out",
        },
    )
    found = explain(
        PodEvidence(
            pod=pod(reason="SchedulerError", message="binding rejected: permit: timed out"),
            attempts=[decided(), failed],
        )
    )
    assert found.reason == "the bind to n1 failed: permit: timed out"
    grouped = pod(reason="SchedulerError", message="EOF", schedulingGroup={"podGroupName": "g"})
    assert "1, 2, 4, 8" not in str(explain(PodEvidence(pod=grouped, attempts=[failed])).next)
    other = pod(reason="SchedulerError", message="EOF")
    assert explain(PodEvidence(pod=other, attempts=[decided(), failed])).reason == (
        "kube-scheduler failed: EOF"
    )


DENIED = (
    """API server answered 422 Invalid: pods "p" is forbidden: ValidatingAdmissionPolicy """
    """'moorage-binder-binds' with binding 'moorage-binder-binds' denied request: the binder may"""
)


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (DENIED, "change what ValidatingAdmissionPolicy moorage-binder-binds refuses"),
        ("API server answered 403 Forbidden: pods", "give the binder the right that the API"),
        ("the API server did not answer", "see whether the API server answers the binder"),
        ("one ended (SIGSEGV) before while plugin Hot ran for it", "mend plugin Hot; with"),
    ],
)
def test_a_bind_that_is_refused_says_what_has_to_change(error: str, step: str) -> None:
    record = BindRecord(node="n1", seconds=0.0, error=f"binder service: {error}")
    why = {"bind": record, "reason": f"the bind to n1 failed: {record.error}"}
    waits = pod(reason="SchedulerError", message=record.error)
    found = explain(PodEvidence(pod=waits, attempts=[attempt(feasible=2, more=why)]))
    assert step in found.next[0]


def test_claims_that_do_not_exist_hold_a_pod_up() -> None:
    claims = [
        {"name": "a", "resourceClaimName": "shared"},
        {"name": "b", "resourceClaimTemplateName": "gpu"},
    ]
    waiting = pod(resourceClaims=claims)
    found = explain(PodEvidence(pod=waiting, missing=["shared"], why_no_attempt="not tried"))
    assert found.reason == (
        "it waits for ResourceClaims that do not exist: shared, b (of template gpu)"
    )
    waiting["status"]["resourceClaimStatuses"] = [{"name": "b", "resourceClaimName": "p-b"}]
    found = explain(PodEvidence(pod=waiting, why_no_attempt="not tried"))
    assert found.reason == "no scheduler has tried it: not tried"
    assert found.next[-1] == "ResourceClaim shared has to exist"
    found = explain(PodEvidence(pod=waiting, why_no_attempt="not tried", has_claims=True))
    assert "a scheduler with a profile" in found.next[-1]


def test_the_gateway_lists_a_pod_with_the_claims_that_it_names() -> None:
    named = {"name": "web", "uid": "u"}
    claims = [{"name": "a", "resourceClaimName": "shared"}]
    raw = {"metadata": named, "spec": {"schedulerName": "moorage", "resourceClaims": claims}}
    seen = decode_seen_pod(msgspec.json.encode(raw))
    assert seen.waiting is not None
    shown = as_shown(seen.pod, seen.waiting)
    assert why_no_attempt(shown, ["moorage"]).endswith("which the gateway may not read: shared")
    asked = {"spec": {"schedulerName": "zzz"}}
    assert why_no_attempt(asked, ["other", "zoned"]).endswith(" (profiles: zoned and 1 more)")
    assert why_no_attempt(asked, []).endswith(" (profiles: none)")


GPU = "example.com/gpu"


def record(**more: object) -> GroupRecord:
    known = {"plugin": "Gang", "name": "ml/train", "members": 16, "min_count": 16, **more}
    return GroupRecord(**known)  # type: ignore[arg-type]


LACKING = record(
    fitting=12,
    topology_key="example.com/rack",
    domain="r1",
    failing="ml/train-12",
    reasons=[
        ReasonNodes(reason=f"Insufficient {GPU}", nodes=5, examples=["n1", "n2", "n3"]),
        ReasonNodes(reason="node is too hot", nodes=1, examples=["n9"]),
    ],
    lacking=GPU,
    lacking_free=2,
    lacking_domain="r7",
    like="n1",
    more_nodes=1,
)


@pytest.mark.parametrize(
    ("group", "sentence", "step"),
    [
        (
            LACKING,
            (
                "group ml/train does not fit: 12 of 16 placed in rack r1; 4 need example.com/gpu, "
                "which is free on 2 nodes of rack r7 only"
            ),
            "with 1 more node like n1 in rack r1 it starts, or with as much example.com/gpu freed",
        ),
        (
            record(members=15, problem="pods of the group are missing"),
            "group ml/train has 15 of 16 pods",
            "1 more pod of the group must be created",
        ),
        (
            record(fitting=16, fits=True),
            "group ml/train fits: 16 of 16 have a node",
            "",
        ),
        (
            record(fitting=15, failing="ml/train-3", reasons=LACKING.reasons[1:]),
            "group ml/train does not fit: 15 of 16 placed; 1 found no node: node is too hot",
            "",
        ),
        (
            record(ahead="ml/first"),
            "group ml/train waits for group ml/first, which is ahead of it and fits",
            "group ml/first is placed first, or is passed over once it is not tried",
        ),
    ],
)
def test_one_sentence_has_the_state_of_a_group(
    group: GroupRecord, sentence: str, step: str
) -> None:
    assert group_sentence(group) == sentence
    assert "".join(group_steps(group)) == step


@pytest.mark.parametrize(
    ("gated", "existing", "steps"),
    [
        ([], 1, ["1 more pod of the group must be created"]),
        ([], 2, ["wait: all pods of the group exist by now"]),
        (["ml/b"], 2, ["whoever set the gates has to remove them from spec.schedulingGates"]),
    ],
)
def test_a_group_lacks_only_pods_that_do_not_exist(
    gated: list[str], existing: int, steps: list[str]
) -> None:
    lacking = record(members=1, min_count=2, problem="pods of the group are missing")
    assert group_steps(lacking, gated, existing) == steps


def test_the_evidence_names_nodes_by_reason() -> None:
    assert list(group_evidence(LACKING)) == [
        (
            "nodes for ml/train-12: 5 Insufficient example.com/gpu (n1, n2, n3, ...), "
            "1 node is too hot (n9)"
        )
    ]


CPU, NO_GPU = Obstacle("short", "cpu"), Obstacle("none", GPU)
CORDONED, UNREACHABLE = (
    Obstacle("cordoned"),
    Obstacle("tainted", "node.kubernetes.io/unreachable:NoSchedule"),
)
LACKS_GPU = f"Insufficient {GPU}"


def survey(by_obstacles: dict[tuple[Obstacle, ...], list[str]], **largest: int) -> Survey:
    usable = [name for names in by_obstacles.values() for name in names]
    return Survey(
        nodes=9,
        usable=usable,
        by_obstacles=by_obstacles,
        requests={"cpu": 1000, GPU: 1},
        largest={"cpu": 8000, GPU: 0, **largest},
    )


@pytest.mark.parametrize(
    ("lacking", "reasons", "steps"),
    [
        (
            survey({(CPU, NO_GPU): ["a"], (NO_GPU,): ["b"]}),
            [LACKS_GPU, "Insufficient cpu"],
            [
                f"no node that the pod may use offers {GPU}: add one that does, or lower the ",
            ],
        ),
        (
            survey({(CPU, NO_GPU): ["a"]}),
            [LACKS_GPU, "Insufficient cpu"],
            [
                f"no node that the pod may use offers {GPU}: add one that does, or lower the ",
            ],
        ),
        (  # a DeviceClass backs it: nobody says that it is short
            survey({(CPU, NO_GPU): ["a"]}),
            ["Insufficient cpu"],
            ["free cpu on a, add a node, or lower the pod's requests of cpu"],
        ),
        (
            survey({(CPU, CORDONED): ["a"], (CPU, UNREACHABLE): ["b", "c"]}),
            ["Insufficient cpu"],
            ["on a: free cpu and uncordon it"],
        ),
        (
            survey({(UNREACHABLE,): ["b"], (CPU,): ["a"], (CORDONED,): ["c"]}),
            ["Insufficient cpu"],
            [
                "uncordon c",
                "see why b has the taint node.kubernetes.io/unreachable:NoSchedule, which ",
            ],
        ),
        (
            survey({(): ["a"], (CPU,): ["b"]}),
            ["Insufficient cpu"],
            ["wait: a suits it by now, as far as the gateway sees"],
        ),
        (
            survey({(): ["a"], (CPU,): ["b"]}),
            ["Insufficient cpu", "node(s) didn't match pod topology spread constraints"],
            [
                "relax the pod's topologySpreadConstraints",
                "free cpu on b, add a node, or lower the pod's requests of cpu",
            ],
        ),
    ],
)
def test_each_step_would_do(lacking: Survey, reasons: list[str], steps: list[str]) -> None:
    rejections = [RejectedNodes(nodes=1, reason=each, by="kube-scheduler") for each in reasons]
    found = advice(rejections, lacking, {})
    assert len(found) == len(steps)
    assert all(each.startswith(step) for each, step in zip(found, steps, strict=True))
