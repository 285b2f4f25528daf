"""What a session may send: beyond it there is a message, no table that grows, and no crash."""

import asyncio
from typing import Any

import grpc.aio
import msgspec
import pytest

from moorage.v1 import types_pb2 as pb
from tests.filter.sessions import cycle, filtering, full_state
from tests.filter.test_by_hand import OddOnly

NODE = msgspec.json.encode({"metadata": {"name": "n1"}})
DEEP = b'{"metadata":{"name":"x","annotations":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
STATEFUL_SETS = pb.ObjectKind(api_version="apps/v1", plural="statefulsets")


def pod(uid: str) -> bytes:
    return msgspec.json.encode({"metadata": {"name": uid, "uid": uid}})


def state(**fields: object) -> pb.State:
    return pb.State(generation=2, **fields)  # type: ignore[arg-type]


def an_object(name: str) -> pb.Object:
    return pb.Object(reference=pb.ObjectReference(kind=STATEFUL_SETS, name=name), json=b"{}")


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (state(nodes=[pb.NodeRow(row=1 << 28, json=NODE)]), "beyond the limit"),
        (state(pods=[pb.PlacedPod(row=0, json=pod(f"{i}")) for i in range(4)]), "more than 3 pods"),
        (
            state(kinds=[STATEFUL_SETS], objects=[an_object(f"{i}") for i in range(3)]),
            "objects of additional kinds",
        ),
        (
            state(kinds=[pb.ObjectKind(api_version="v1", plural=f"k{i}s") for i in range(65)]),
            "more than 64 additional kinds",
        ),
        (state(nodes=[pb.NodeRow(row=0, json=DEEP)]), "cannot apply the state"),
        (state(nodes=[pb.NodeRow(row=0, json=b"\xff\xfe")]), "cannot apply the state"),
        (state(pods=[pb.PlacedPod(row=7, json=pod("1"))]), "no node in row 7"),
    ],
    ids=["row", "pods", "objects", "kinds", "deep", "not UTF-8", "no such row"],
)
async def test_a_state_beyond_the_limits_ends_its_session_and_no_other(
    refused: pb.State, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with filtering(OddOnly, max_pods=3, max_objects=2) as service:
        other = await service.session(full_state(2, OddOnly))
        session = await service.session(full_state(2, OddOnly))
        with pytest.raises(grpc.aio.AioRpcError, match=message) as ended:
            await session.ask(state=refused)
        assert ended.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert (await other.ask(cycle=cycle(candidates=b"\x02"))).result.status.code == 0
    assert "Traceback" not in "".join(capfd.readouterr())


async def test_pods_and_objects_that_change_count_once() -> None:
    async with filtering(OddOnly, max_pods=3, max_objects=2) as service:
        session = await service.session(full_state(2, OddOnly))
        for _ in range(2):
            same = state(
                pods=[pb.PlacedPod(row=0, json=pod(f"{i}")) for i in range(3)],
                kinds=[STATEFUL_SETS],
                objects=[an_object(f"{i}") for i in range(2)],
            )
            assert (await session.ask(state=same)).HasField("acknowledgement")


@pytest.mark.parametrize(
    "odd",
    [
        cycle(candidates=b"\xff" * (1 << 20)),
        cycle(overrides=[pb.NodeRow(row=1 << 28, json=NODE)]),
        cycle(overrides=[pb.NodeRow(row=0, json=DEEP)]),
        cycle(pod=pb.Pod(json=DEEP)),
        cycle(pod=pb.Pod(json=b"\xff")),
        cycle(profile="nobody"),
        cycle(candidates=b"", node_names=["n"] * 1000),
        cycle(plugin="\n" * 100_000),
    ],
    ids=["bitmap", "row", "deep", "deep pod", "not UTF-8", "profile", "names", "plugin"],
)
async def test_odd_cycles_have_an_answer_and_leave_no_traceback(
    odd: pb.Cycle, capfd: pytest.CaptureFixture[str]
) -> None:
    async with filtering(OddOnly) as service:
        session = await service.session(full_state(2, OddOnly))
        result = (await session.ask(cycle=odd)).result
        assert result.status.code in (0, *(code.value[0] for code in CODES))
        assert (await session.ask(cycle=cycle())).result.status.code == 0
    output = "".join(capfd.readouterr())
    assert "Traceback" not in output
    assert len(output) < 10_000


CODES = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


async def test_garbage_in_a_session_is_invalid() -> None:
    async with filtering(OddOnly) as service:
        session: Any = service.channel.stream_stream("/moorage.v1.ReplicaService/Session")
        stream = session(iter([b"\xff\xff"]))
        with pytest.raises(grpc.aio.AioRpcError, match="the message is malformed"):
            async for _ in stream:
                pass


async def test_sessions_beyond_the_limit_are_refused_until_one_ends() -> None:
    async with filtering(OddOnly, max_sessions=2) as service:
        first = await service.session(full_state(2, OddOnly))
        await service.session()
        with pytest.raises(grpc.aio.AioRpcError, match="no more may be") as refused:
            await service.session()
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await first.end()
        async with asyncio.timeout(20):
            await service.session()
