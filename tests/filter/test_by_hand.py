"""Calls by hand: what they are about, and that sessions hardly notice them."""

import asyncio
import time

import grpc.aio
import msgspec
import pytest

from moorage import FilterPlugin, Node, Pod, Rejection
from moorage.v1 import replica_pb2, types_pb2
from tests.filter.sessions import cycle, filtering, full_state

FAILED = grpc.StatusCode.FAILED_PRECONDITION
INVALID = grpc.StatusCode.INVALID_ARGUMENT


class OddOnly(FilterPlugin):
    """Rejects nodes with an even number, and one of them for another reason."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        number = int(node.name[1:])
        if number == 100:
            return Rejection("a hundred")
        return None if number % 2 else Rejection("even")


class Slow(FilterPlugin):
    """Needs a millisecond for each node."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        time.sleep(0.001)
        return None


async def test_an_answer_in_many_steps_is_that_of_one_cycle() -> None:
    async with filtering(OddOnly) as service:
        await service.session(full_state(300, OddOnly))
        answer = await service.filter()
    assert list(answer.feasible) == [f"n{i}" for i in range(1, 300, 2)]
    rejected = {each.node: each.reason.text for each in answer.rejected}
    assert list(rejected) == [f"n{i}" for i in range(0, 300, 2)]
    assert rejected.pop("n100") == "a hundred"
    assert set(rejected.values()) == {"even"}
    assert [each.plugin for each in answer.plugins] == ["OddOnly"]


async def test_a_session_is_answered_while_a_person_asks_about_many_nodes() -> None:
    async with filtering(Slow) as service:
        session = await service.session(full_state(200, Slow))
        asked = asyncio.create_task(service.filter())
        for _ in range(5):
            result = (await session.ask(cycle=cycle())).result
            assert result.status.code == 0
        assert not asked.done()  # a fifth of a second's work, of which each cycle waits for a step
        assert len((await asked).feasible) == 200


class NearlyTooSlow(FilterPlugin):
    """Takes more than half of its time budget."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        time.sleep(0.3)
        return None


async def test_overruns_by_hand_refuse_calls_by_hand_alone() -> None:
    async with filtering(NearlyTooSlow) as service:
        session = await service.session(full_state(1, NearlyTooSlow, budget=0.56))
        problems = [await _outcome(service.filter()) for _ in range(3)]
        assert "longer than its time budget of 0.28 s" in problems[0]
        assert "not called for this pod" in problems[2]
        result = (await session.ask(cycle=cycle())).result
        assert result.status.code == 0, result.status.message


async def test_a_flood_by_hand_is_refused_beyond_its_lane_and_sessions_go_on() -> None:
    async with filtering(Slow, adhoc_waiting=2) as service:
        session = await service.session(full_state(100, Slow))
        flood = {asyncio.create_task(_outcome(service.filter())) for _ in range(20)}
        cycles = 0
        while any(not call.done() for call in flood):
            assert (await session.ask(cycle=cycle())).result.status.code == 0
            cycles += 1
        outcomes = [await call for call in flood]
    assert outcomes.count("OK") == 4  # two run and two wait
    refused = [outcome for outcome in outcomes if outcome != "OK"]
    assert all(outcome.startswith("RESOURCE_EXHAUSTED") for outcome in refused)
    assert "call again later" in refused[0]
    assert cycles > 5


async def _outcome(call: object) -> str:
    try:
        await call  # type: ignore[misc]
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    return "OK"


async def test_a_session_by_hand_hides_no_state_that_a_gateway_keeps() -> None:
    async with filtering(OddOnly) as service:
        gateway = await service.session(full_state(3, OddOnly))
        by_hand = await service.session(full_state(1, OddOnly, prefix="x"))
        await service.session(full_state(0))
        assert list((await service.filter()).feasible) == ["n1"]
        await by_hand.end()
        assert list((await service.filter()).feasible) == ["n1"]
        await gateway.end()
        with pytest.raises(grpc.aio.AioRpcError):  # only the empty one is left
            await service.filter(["n1"])


async def test_no_state_is_left_of_a_session_that_has_ended() -> None:
    async with filtering(OddOnly) as service:
        await (await service.session(full_state(3, OddOnly))).end()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await service.filter()
        assert refused.value.code() is FAILED


async def test_calls_about_too_many_nodes_are_refused_with_what_to_do() -> None:
    async with filtering(OddOnly, adhoc_nodes=10, adhoc_manifests=2) as service:
        await service.session(full_state(11, OddOnly))
        node = types_pb2.Node(json=msgspec.json.encode({"metadata": {"name": "x1"}}))
        for names, nodes, hint in (
            ([], [], "may be about 10"),
            ([f"n{i}" for i in range(11)], [], "may be about 10"),
            ([], [node] * 3, "may bring 2"),
        ):
            with pytest.raises(grpc.aio.AioRpcError, match=hint) as refused:
                await service.filter(names, nodes=nodes)
            assert refused.value.code() is INVALID
        state = replica_pb2.GetStateRequest(node_names=["n1"] * 11)
        with pytest.raises(grpc.aio.AioRpcError, match="may be about"):
            await service.stub.GetState(state, timeout=20)
        assert list((await service.filter(["n1", "n2", "n1"])).feasible) == ["n1"]
        assert list((await service.filter(nodes=[node])).feasible) == ["x1"]
