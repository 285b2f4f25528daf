"""Every request that real kube-schedulers sent, and answers as Go would decode them."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from gateway.cycle import Cycle, NodeSet
from tools.inprocess.edge import RECORDINGS, Filtered, ScriptedCycles, recorded, serving, subset


class FilterResult(msgspec.Struct, forbid_unknown_fields=True):
    Nodes: dict[str, Any] | None
    NodeNames: list[str] | None
    FailedNodes: dict[str, str] | None
    FailedAndUnresolvableNodes: dict[str, str] | None
    Error: str


class HostPriority(msgspec.Struct, forbid_unknown_fields=True):
    Host: str
    Score: int


class MetaPod(msgspec.Struct, forbid_unknown_fields=True):
    UID: str


class MetaVictims(msgspec.Struct, forbid_unknown_fields=True):
    Pods: list[MetaPod]
    NumPDBViolations: int


class PreemptionResult(msgspec.Struct, forbid_unknown_fields=True):
    NodeNameToMetaVictims: dict[str, MetaVictims]


class BindingResult(msgspec.Struct, forbid_unknown_fields=True):
    Error: str


async def reject_every_other(call: Cycle) -> Filtered:
    return Filtered(
        feasible=subset(call, *range(0, len(call.nodes), 2)),
        unresolvable=dict.fromkeys(call.nodes.names[1::2], "odd"),
    )


async def score_by_length(call: Cycle) -> Sequence[int]:
    return [len(name) for name in call.nodes.names]


async def drop_all(call: Cycle) -> NodeSet:
    return subset(call)


def requests(verb: str) -> list[Any]:
    return [
        pytest.param(body, id=f"{recording}-{index}")
        for recording in RECORDINGS
        for index, (_, body) in enumerate(recorded(recording, verb))
    ]


def given_names(args: dict[str, Any]) -> list[str]:
    if args["NodeNames"] is not None:
        return list(args["NodeNames"])
    return [item["metadata"]["name"] for item in args["Nodes"]["items"]]


def survivors(args: dict[str, Any], result: FilterResult) -> list[str]:
    """Read the survivors as kube-scheduler does: in the field that the request used, or none."""
    if args["NodeNames"] is not None and result.NodeNames is not None:
        assert set(result.NodeNames) <= set(args["NodeNames"])
        return result.NodeNames
    return (
        [] if result.Nodes is None else [item["metadata"]["name"] for item in result.Nodes["items"]]
    )


@pytest.mark.parametrize("body", requests("filter"))
@pytest.mark.parametrize("cut", [False, True], ids=["keep all", "reject some"])
async def test_filter(body: str, cut: bool) -> None:
    args = json.loads(body)
    cycles = ScriptedCycles(on_filter=reject_every_other) if cut else ScriptedCycles()
    async with serving(cycles) as edge:
        result = msgspec.json.decode((await edge.post("/filter", body)).body, type=FilterResult)
    (call,) = cycles.scheduling
    names = given_names(args)
    assert result.Error == ""
    assert survivors(args, result) == (names[::2] if cut else names)
    assert result.FailedNodes is None
    assert list(result.FailedAndUnresolvableNodes or {}) == (names[1::2] if cut else [])
    assert call.pod.metadata.uid == args["Pod"]["metadata"]["uid"]
    assert body.startswith('{"Pod":' + call.pod_json.decode() + ",")
    if result.Nodes is not None:
        kept = set(survivors(args, result))
        sent = [item for item in args["Nodes"]["items"] if item["metadata"]["name"] in kept]
        assert result.Nodes["items"] == sent


@pytest.mark.parametrize("body", requests("prioritize"))
async def test_prioritize(body: str) -> None:
    async with serving(ScriptedCycles(on_prioritize=score_by_length)) as edge:
        answer = await edge.post("/prioritize", body)
    scores = {entry.Host: entry.Score for entry in decoded(answer.body)}
    assert scores == {name: len(name) for name in given_names(json.loads(body))}


@pytest.mark.parametrize("body", requests("preempt"))
@pytest.mark.parametrize("drop", [False, True], ids=["keep all", "drop all"])
async def test_preempt(body: str, drop: bool) -> None:
    args = json.loads(body)
    given = args["NodeNameToVictims"] or args["NodeNameToMetaVictims"]
    cycles = ScriptedCycles(on_preempt=drop_all) if drop else ScriptedCycles()
    async with serving(cycles) as edge:
        answer = await edge.post("/preempt", body)
    result = msgspec.json.decode(answer.body, type=PreemptionResult).NodeNameToMetaVictims
    uids = {node: [victim.UID for victim in of.Pods] for node, of in result.items()}
    assert uids == ({} if drop else {node: victim_uids(of) for node, of in given.items()})


@pytest.mark.parametrize("body", requests("bind"))
async def test_bind(body: str) -> None:
    args = json.loads(body)
    async with serving() as edge:
        answer = await edge.post("/bind", body)
        (call,) = edge.cycles.binds
    assert msgspec.json.decode(answer.body, type=BindingResult).Error == ""
    assert {
        "PodName": call.name,
        "PodNamespace": call.namespace,
        "PodUID": call.uid,
        "Node": call.node,
    } == args


@pytest.mark.parametrize("recording", RECORDINGS)
async def test_the_whole_conversation_on_one_connection(recording: str) -> None:
    async with serving() as edge, edge.connect() as wire:
        for verb, body in recorded(recording):
            answer = await wire.post(f"/{verb}", body.encode())
            assert answer.status == 200
            assert b'"Error":"m' not in answer.body
        assert edge.count("moorage_extender_requests_total", verb="filter", result="ok") == 10


def victim_uids(victims: dict[str, Any]) -> list[str]:
    return [pod.get("UID") or pod["metadata"]["uid"] for pod in victims["Pods"]]


def decoded(body: bytes) -> list[HostPriority]:
    return msgspec.json.decode(body, type=list[HostPriority])
