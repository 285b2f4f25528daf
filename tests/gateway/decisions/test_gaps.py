"""Explanations and lists where something is missing: a field, a decision, time to look at nodes."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
import pytest

from gateway.cluster.pods import Waiting
from gateway.cluster.state import ClusterState
from gateway.cycle.decision import ClaimRecord, Decision
from gateway.decisions.advice import AT_ONCE, Surveyor
from gateway.decisions.capacity import PLACEHOLDER, SCHEDULER, pod_rejections, requests_of
from gateway.decisions.explaining import MOST_SURVEYED, AskedOfPod, Explainer
from gateway.decisions.explanation import Explanation, Object, Survey
from gateway.decisions.log import DecisionLog
from gateway.decisions.nodes import KeptArrays
from gateway.policy.policy import PolicyHolder
from moorage.models import Pod, decode_pod
from moorage.testing import make_node, make_pod
from moorage_host.policy import default_document
from tests.gateway.decisions.test_why import attempt

T = TypeVar("T")

POD = {
    "metadata": {"namespace": "ns", "name": "p", "uid": "u"},
    "spec": {"schedulerName": "moorage", "nodeName": "n1"},
}
EVENT = {"metadata": {"creationTimestamp": "2026-11-23T01:00:00Z"}, "note": "hello"}


def rejecting(pod: str, reasons: int = 1) -> Decision:
    more = {"namespace": "default", "pod": pod, "uid": pod}
    return attempt(P={f"reason {number}": 1 for number in range(reasons)}, more=more)


def explainer(
    log: DecisionLog,
    state: ClusterState,
    pod: Object | None = None,
    events: Sequence[Object] = (),
    **more: Any,
) -> Explainer:
    """Build what explains pods of a state, all of which the API server shows as *pod*."""

    async def pod_of(namespace: str, name: str) -> Object | None:
        return pod

    async def events_of(_: Object) -> Sequence[Object]:
        return events

    usual: dict[str, Any] = {
        "arrays": KeptArrays(count=1, memory=1),
        "surveyor": Surveyor(state),
        "waiting": {},
    }
    return Explainer(
        log=log,
        state=state,
        pod_of=pod_of,
        events_of=events_of,
        bind_of=lambda _: {},
        is_outdated=lambda _: False,
        policy=PolicyHolder(default_document()),
        **usual | more,
    )


async def anybody(namespace: str) -> bool:
    return True


@pytest.mark.parametrize("spec", [{"nodeName": "n1"}, {}], ids=["bound", "pending"])
@pytest.mark.parametrize("field", [{}, {"reason": None}], ids=["no reason", "null"])
async def test_an_event_needs_no_reason(spec: dict[str, Any], field: dict[str, Any]) -> None:
    pod = {**POD, "spec": {"schedulerName": "moorage", **spec}}
    condition = {"type": "PodScheduled", "reason": "SchedulerError", "message": "it broke"}
    pod["status"] = {"conditions": [condition]}
    asked = explainer(DecisionLog(pods=9, attempts=5), ClusterState(), pod, [{**EVENT, **field}])
    found = await asked.of_pod("ns", "p", AskedOfPod(), anybody)
    assert isinstance(found, Explanation)
    assert [(each.reason, each.note) for each in found.events or ()] == [("", "hello")]


@pytest.mark.parametrize("field", [{}, {"message": None}], ids=["no message", "null"])
@pytest.mark.parametrize("reason", ["Unschedulable", "SchedulerError"])
async def test_a_condition_needs_no_message(reason: str, field: dict[str, Any]) -> None:
    condition = {"type": "PodScheduled", "reason": reason, **field}
    spec = {"schedulerName": None, **field}
    pod = {**POD, "spec": spec, "status": {"conditions": [condition]}}
    asked = explainer(DecisionLog(pods=9, attempts=5), ClusterState(), pod)
    found = await asked.of_pod("ns", "p", AskedOfPod(), anybody)
    assert isinstance(found, Explanation)
    assert "None" not in f"{found.headline} {found.why_no_attempt}"


@pytest.mark.parametrize("pod", [{}, None], ids=["gone", "not shown"])
async def test_a_decision_may_go_while_its_pod_is_explained(pod: Object | None) -> None:
    log, state = DecisionLog(pods=2, attempts=5), ClusterState()
    state.set_node(make_node("n1"))
    log.add(rejecting("p"))
    holder = make_pod("holder")
    state.claim(holder, "n1", None, 60.0)
    claimed = rejecting("holder")
    claimed.uid, claimed.claim = holder.uid, ClaimRecord(node="n1", plugins=["P"])
    log.add(claimed)

    async def slow(namespace: str) -> bool:
        for name in ("a", "b"):  # meanwhile others are decided about
            log.add(rejecting(name))
        return True

    found = await explainer(log, state, pod).of_pod("default", "p", AskedOfPod(), slow)
    assert isinstance(found, Explanation)
    assert found.tried == 1


async def turns_during(work: Coroutine[Any, Any, T]) -> tuple[T, int]:
    """Return what work finds, and how often others got their turn meanwhile."""
    task = asyncio.create_task(work)
    for turns in range(10_000_000):
        if task.done():
            return task.result(), turns
        await asyncio.sleep(0)
    raise AssertionError("the work does not end")


async def test_cycles_get_their_turn_while_rejections_are_listed() -> None:
    log, state, waiting = DecisionLog(pods=999, attempts=5, unpacked=1), ClusterState(), {}
    for number in range(200):
        pod = make_pod(f"p{number}")
        state.set_pod(pod)
        waiting[pod.uid] = Waiting(reason="Unschedulable")
        for _ in range(3):
            decision = rejecting(pod.name)
            decision.uid = pod.uid
            log.add(decision)
    found, turns = await turns_during(pod_rejections(state, waiting, log))
    assert len(found) == 200
    assert turns >= 4


async def test_cycles_get_their_turn_while_a_node_is_asked_about_that_is_not_there() -> None:
    log, state = DecisionLog(pods=9, attempts=5), ClusterState()
    for number in range(2000):
        state.set_node(make_node(f"ip-10-{number // 256}-{number % 256}.example.com"))
    asked = explainer(log, state, POD).of_pod(
        "ns", "p", AskedOfPod(node="ip-10-7-300.example.com"), anybody
    )
    found, turns = await turns_during(asked)
    assert str(found).startswith("there is no node ip-10-7-300.example.com, did you mean")
    assert turns >= 3


def test_a_placeholder_speaks_for_pods_of_its_namespace_alone() -> None:
    state = ClusterState()
    waiting: dict[str, Waiting] = {}
    state.set_pod(make_pod("mine", namespace="shop"))
    (mine,) = state.known_pods()
    for namespace in ("shop", "bank"):
        metadata = {
            "namespace": namespace,
            "name": "placeholder",
            "uid": f"of {namespace}",
            "labels": {PLACEHOLDER: "karpenter"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": mine}],
        }
        made = {"metadata": metadata, "spec": {"schedulerName": SCHEDULER}}
        state.set_pod(decode_pod(msgspec.json.encode(made)))
        waiting[f"of {namespace}"] = Waiting(message=namespace)
    assert requests_of(state, waiting)[mine].message == "shop"


WAITING = Waiting(reason="Unschedulable", message="0/1 nodes are available: 1 Too many pods.")


class _Counting(Surveyor):
    """Notes for which pods it looks at nodes."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self.pods: list[str] = []

    async def survey(self, pod: Pod) -> Survey:
        self.pods.append(pod.name)
        return await super().survey(pod)


async def test_a_list_looks_at_the_nodes_for_a_few_pods_however_busy_the_cluster_is() -> None:
    state = ClusterState()
    state.set_node(make_node("n"))
    pods = [make_pod(f"p{i}", requests={"cpu": f"{i}m"}) for i in range(3 * MOST_SURVEYED)]
    for pod in pods:
        state.set_pod(pod)

    surveyor, waiting = _Counting(state), {pod.uid: WAITING for pod in pods}
    explains = explainer(DecisionLog(pods=9, attempts=5), state, surveyor=surveyor, waiting=waiting)
    explained = await explains.listing(anybody)
    for number, pod in enumerate(pods):
        state.set_node(make_node("n", labels={"turn": str(number)}))
        assert await explained(pod) is not None
    assert len(surveyor.pods) == MOST_SURVEYED


async def test_what_is_found_while_the_cluster_changes_is_not_kept() -> None:
    state = ClusterState()
    for number in range(2 * AT_ONCE):
        state.set_node(make_node(f"n{number}"))
    surveyor, pod = Surveyor(state), make_pod("p", requests={"cpu": "1"})
    first = asyncio.create_task(surveyor.survey(pod))
    await asyncio.sleep(0)  # it has seen the first nodes
    state.set_node(make_node("n0", allocatable={"cpu": "0"}))
    await surveyor.survey(make_pod("other"))
    assert len((await first).usable) == 2 * AT_ONCE
    found = await surveyor.survey(pod)
    assert [each for each in found.by_obstacles if each], "n0 has no processor any more"
