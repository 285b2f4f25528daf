"""What real kube-schedulers sent, and odd bodies: the whole of Moorage answers as Go reads it.

The answers are decoded by the code that the stand-in for kube-scheduler decodes them with.
"""

import asyncio
import io
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from moorage_host.kube_scheduler.extender import (
    bind_answer,
    decode_answer,
    filter_answer,
    preempt_answer,
    score_answer,
)
from tests.manifests import pod
from tests.stack.stack import Stack
from tools.planes.embedded import Object
from tools.planes.objects import node
from tools.recordings import recorded_requests, recording_names

pytestmark = pytest.mark.asyncio(loop_scope="session")

NODES = [f"worker-{number}" for number in range(6)]
"""Those of the recordings."""

JSON = {"Content-Type": "application/json"}
UNKNOWN = "no-such-node"
LONGEST_REASON = 128
"""An Event has 1,024 characters for all reasons; a pod's condition has all of them."""


class KubeScheduler:
    """Sends bodies to a running stack, and holds each answer to what kube-scheduler expects."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    async def send(self, verb: str, args: Object) -> Any:
        """Return what kube-scheduler reads in the answer, which passed every check."""
        url = f"{self._stack.addresses.extender}/{verb}"
        body = io.BytesIO(json.dumps(args, separators=(",", ":")).encode())
        async with self._stack.session.post(url, data=body, headers=JSON) as response:
            content = await response.read()
            assert response.status == 200, content
            assert int(response.headers["Content-Length"]) == len(content)
            assert response.headers.get("Connection", "").lower() != "close"
        return CHECKS[verb](args, decode_answer(content))

    async def cycle(self, obj: Object, names: Iterable[str] = NODES) -> list[str]:
        """Filter and prioritize a pod by names; return the survivors."""
        args: Object = {"Pod": obj, "Nodes": None, "NodeNames": list(names)}
        kept: list[str] = await self.send("filter", args)
        if len(kept) > 1:
            await self.send("prioritize", {**args, "NodeNames": kept})
        return kept


def sent_names(args: Object) -> list[str]:
    if args["NodeNames"] is not None:
        return list(args["NodeNames"])
    return [each["metadata"]["name"] for each in args["Nodes"]["items"]]


def checked_filter(args: Object, answer: Any) -> list[str]:
    """Every node is kept once or has a short reason; nodes come back as they were sent."""
    found, sent = filter_answer(answer), sent_names(args)
    assert found.error == ""
    if args["NodeNames"] is not None:
        kept = found.names
    else:
        whole = {each["metadata"]["name"]: each for each in args["Nodes"]["items"]}
        kept = [each["metadata"]["name"] for each in found.nodes or ()]
        assert found.nodes == [whole[name] for name in kept]
    assert kept is not None
    assert sorted([*kept, *found.failed, *found.unresolvable]) == sorted(sent)
    assert found.failed == {}, "kube-scheduler would evict pods in vain"
    for name, reason in found.unresolvable.items():
        assert name not in reason
        assert 0 < len(reason) <= LONGEST_REASON
    return kept


def checked_scores(args: Object, answer: Any) -> dict[str, int]:
    """Every node has one score of 0 to 100, or none has."""
    scores = score_answer(answer)
    assert {host for host, _ in scores} in (set(), set(sent_names(args)))
    assert len(dict(scores)) == len(scores)
    assert all(0 <= score <= 100 for _, score in scores)
    return dict(scores)


def checked_victims(args: Object, answer: Any) -> dict[str, list[str]]:
    """Victims were sent, stay in their order, and no node loses all of them."""
    given = args["NodeNameToMetaVictims"] or args["NodeNameToVictims"]
    kept = preempt_answer(answer)
    for name, uids in kept.items():
        sent = [each.get("UID") or each["metadata"]["uid"] for each in given[name]["Pods"] or ()]
        assert [uid for uid in sent if uid in uids] == uids
        assert bool(uids) == bool(sent)
    return kept


def checked_bind(args: Object, answer: Any) -> str:
    """There is no such pod, so the bind is refused."""
    error = bind_answer(answer)
    assert error, f"kube-scheduler would take {args['PodName']} for bound for ever"
    return error


CHECKS: dict[str, Callable[[Object, Any], Any]] = {
    "filter": checked_filter,
    "prioritize": checked_scores,
    "preempt": checked_victims,
    "bind": checked_bind,
}


async def scheduler(stack: Stack) -> KubeScheduler:
    """Return a caller, once the gateway knows the nodes of the recordings."""
    await stack.create([node(name) for name in NODES])
    return KubeScheduler(stack)


@pytest.mark.parametrize("recording", recording_names())
async def test_the_answers_to_recorded_requests_are_right(stack: Stack, recording: str) -> None:
    caller = await scheduler(stack)

    # One after another: what the binds under way take up decides about the next pod.
    binds = list[Object]()
    for request in recorded_requests(recording):
        body = request.body.replace('"schedulerName":"rec"', '"schedulerName":"moorage"')
        args = json.loads(body)
        await caller.send(request.verb, args)
        if request.verb == "bind":
            binds.append(args)
    await asyncio.gather(*(caller.send("bind", args) for args in binds))  # answers were lost


def annotated(name: str, text: str) -> Object:
    obj = pod(name)
    obj["metadata"]["annotations"] = {"note": text}
    return obj


def sparse() -> Object:
    """Build a pod in which every optional field is absent, or null as Go writes nil maps."""
    metadata = {"name": "sparse", "namespace": "default", "uid": "uid-sparse", "labels": None}
    spec = {"schedulerName": "moorage", "tolerations": None}
    containers = [{"name": "c", "resources": {}}]
    return {"metadata": metadata, "spec": {**spec, "containers": containers}, "status": {}}


@pytest.mark.parametrize(
    "obj",
    [
        annotated("large", "x" * 1_400_000),  # etcd takes 1.5 MiB
        annotated("escapes", '<b>&amp;é漢字\u2028</b> "quoted" \\ \U0001f600\t'),
        pod("newer", newerField={"mode": "New"}, podSet=["a"]),
        sparse(),
    ],
    ids=lambda obj: obj["metadata"]["name"],
)
async def test_odd_pods_are_placed(stack: Stack, obj: Object) -> None:
    caller = await scheduler(stack)
    assert await caller.cycle(obj) == NODES


async def test_5000_names_are_answered_although_most_nodes_are_unknown(stack: Stack) -> None:
    caller = await scheduler(stack)
    names = [*NODES, *(f"{UNKNOWN}-{number}" for number in range(5000 - len(NODES)))]
    assert await caller.cycle(pod("many"), names) == NODES


@pytest.mark.parametrize("pods", [[], None], ids=["empty", "null"])
async def test_a_candidate_without_victims_is_answered(stack: Stack, pods: object) -> None:
    """Kube-scheduler after 1.37 sends candidates that only the extender rejected."""
    caller = await scheduler(stack)
    some = {"Pods": [{"UID": "victim-1"}, {"UID": "victim-2"}], "NumPDBViolations": 0}
    victims = {NODES[0]: {"Pods": pods, "NumPDBViolations": 0}, NODES[-1]: some}
    args = {"Pod": pod("preemptor"), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
    assert NODES[-1] in await caller.send("preempt", args)
