"""Many binds over one stream, as gateways ask for them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
import structlog.testing

from moorage import Binding
from moorage.v1 import binder_pb2 as pb
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.rpc.convert import set_duration
from moorage_host.rpc.serve import running
from services.binder.cluster import PodClient
from services.binder.servicer import binder_service
from tools.inprocess.api import Api
from tools.inprocess.binder import BINDINGS, request, serving, settings_for
from tools.waiting import until


class Stream:
    """A stream as its caller sees it; binds are numbered by hand."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.call = BinderServiceStub(channel).Session(timeout=50)

    async def send(
        self, number: int, bind: pb.BindRequest | None, seconds: float = 50, sent: float = 0
    ) -> None:
        message = pb.BinderServiceSessionRequest(id=number, bind=bind)
        if seconds:
            set_duration(message.timeout, seconds)
        if sent:
            set_duration(message.sent, sent)
        await self.call.write(message)

    async def hear(self) -> pb.BinderServiceSessionResponse:
        answer = await self.call.read()
        assert isinstance(answer, pb.BinderServiceSessionResponse)
        return answer

    async def ask(
        self, bind: pb.BindRequest, seconds: float = 50
    ) -> pb.BinderServiceSessionResponse:
        await self.send(99, bind, seconds)
        answer = await self.hear()
        assert answer.id == 99
        return answer


@pytest.fixture
async def channel(kubeconfig: Path) -> AsyncIterator[grpc.aio.Channel]:
    async with serving(kubeconfig) as (_, channel):
        yield channel


@pytest.fixture
def stream(channel: grpc.aio.Channel) -> Stream:
    return Stream(channel)


async def test_each_bind_is_answered_when_it_ends(stream: Stream, api: Api) -> None:
    posts = api.count(*BINDINGS, delay_seconds=0.5)
    await stream.send(1, request(api.pod("slow")))
    await until(lambda: posts() == 1)
    api.faults.clear()
    await stream.send(2, request(api.pod("fast"), "node-b"))
    answers = [await stream.hear() for _ in range(2)]
    assert [answer.id for answer in answers] == [2, 1]
    assert all(answer.outcome == pb.OUTCOME_BOUND for answer in answers)
    assert (api.node_of("slow"), api.node_of("fast")) == ("node-a", "node-b")


@pytest.mark.parametrize(("sent", "posted"), [(-10, 0), (1000, 1)])
async def test_a_bind_that_comes_after_its_time_is_not_done(
    stream: Stream, api: Api, sent: float, posted: int
) -> None:
    posts = api.count(*BINDINGS)
    await stream.send(1, request(api.pod("late")), seconds=5, sent=sent)
    answer = await stream.hear()
    assert bool(answer.status.code) == (not posted)
    assert posts() == posted


async def test_equal_binds_are_one_and_each_is_answered(stream: Stream, api: Api) -> None:
    posts = api.count(*BINDINGS, delay_seconds=0.2)
    asked = request(api.pod())
    for number in (1, 2, 3):
        await stream.send(number, asked)
    answers = [await stream.hear() for _ in range(3)]
    assert sorted(answer.id for answer in answers) == [1, 2, 3]
    assert posts() == 1
    assert (await stream.ask(asked, seconds=0)).outcome == pb.OUTCOME_ALREADY_BOUND


async def test_a_bind_fails_as_a_call_does_and_the_stream_lives_on(
    channel: grpc.aio.Channel, stream: Stream, api: Api
) -> None:
    free = api.pod("free")
    refused = [
        request(api.pod("elsewhere", nodeName="x")),
        request(api.pod("gated", schedulingGates=[{"name": "example.com/g"}])),
        request(free, name="ghost"),
        request(free, uid="another"),
        request(free, node="-node"),
        request(free, decision=b"{"),
        pb.BindRequest(),
    ]
    for asked in refused:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await BinderServiceStub(channel).Bind(asked, timeout=50)
        told, answer = caught.value, await stream.ask(asked)
        assert answer.status.code == told.code().value[0]
        assert answer.status.message == told.details()
        assert answer.reason == dict(told.trailing_metadata()).get("moorage-reason", "")
        assert answer.outcome == pb.OUTCOME_UNSPECIFIED
    await stream.send(1, None)
    assert (await stream.hear()).status.message == "cannot bind: namespace is missing"
    assert (await stream.ask(request(free))).outcome == pb.OUTCOME_BOUND


async def test_too_many_binds_are_refused_one_by_one(kubeconfig: Path, api: Api) -> None:
    posts = api.count(*BINDINGS, delay_seconds=0.2)
    async with serving(kubeconfig, concurrency=1, max_waiting=0) as (_, channel):
        stream = Stream(channel)
        await stream.send(1, request(api.pod("first")))
        await until(lambda: posts() == 1)
        await stream.send(2, request(api.pod("second")))
        answers = [await stream.hear() for _ in range(2)]
    assert [answer.id for answer in answers] == [2, 1]
    assert answers[0].status.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert api.node_of("second") is None


async def test_an_answer_comes_before_the_caller_stops_listening(
    kubeconfig: Path, api: Api
) -> None:
    api.fault(*BINDINGS, delay_seconds=0.5)
    async with serving(kubeconfig, answer_margin=0.8) as (_, channel):
        answer = await Stream(channel).ask(request(api.pod()), seconds=1.0)
        assert answer.status.code == grpc.StatusCode.DEADLINE_EXCEEDED.value[0]
        assert "is not known to be bound" in answer.status.message
        answer = await Stream(channel).ask(request(api.read_pod()), seconds=50)
        assert (answer.status.code, api.node_of()) == (0, "node-a")


async def test_a_bind_without_a_timeout_has_the_binders_own(kubeconfig: Path, api: Api) -> None:
    api.fault(*BINDINGS, delay_seconds=0.5)
    async with serving(kubeconfig, bind_timeout=0.2) as (_, channel):
        answer = await Stream(channel).ask(request(api.pod()), seconds=0)
    assert answer.status.code == grpc.StatusCode.DEADLINE_EXCEEDED.value[0]


async def test_a_bug_is_logged_once_and_answered(
    kubeconfig: Path, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(PodClient):
        async def create_binding(self, binding: Binding, *, dry_run: bool = False) -> None:
            raise RuntimeError(str(binding))

    monkeypatch.setattr("services.binder.servicer.PodClient", Broken)
    async with serving(kubeconfig) as (_, channel):
        with structlog.testing.capture_logs() as logs:
            answer = await Stream(channel).ask(request(api.pod()))
    assert answer.status.code == grpc.StatusCode.INTERNAL.value[0]
    assert answer.status.message == "internal error; the log of the service has the cause"
    assert len([line for line in logs if line["log_level"] == "error"]) == 1


async def test_binds_go_on_when_the_caller_hangs_up(stream: Stream, api: Api) -> None:
    posts = api.count(*BINDINGS, delay_seconds=0.2)
    await stream.send(1, request(api.pod()))
    await until(lambda: posts() == 1)
    stream.call.cancel()
    await until(api.node_of)


async def test_a_caller_who_has_no_more_binds_gets_the_answers(stream: Stream, api: Api) -> None:
    await stream.send(1, request(api.pod()))
    await stream.call.done_writing()
    assert (await stream.hear()).outcome == pb.OUTCOME_BOUND
    assert await stream.call.read() is grpc.aio.EOF


async def test_a_binder_that_ends_says_so_and_answers_what_is_under_way(
    kubeconfig: Path, api: Api
) -> None:
    unavailable = grpc.StatusCode.UNAVAILABLE
    posts = api.count(*BINDINGS, delay_seconds=0.5)
    async with serving(kubeconfig) as (service, channel):
        stream, idle = Stream(channel), Stream(channel)
        assert (await idle.ask(request(api.pod("done"), node=""))).status.code
        await stream.send(1, request(api.pod()))
        await until(lambda: posts() == 1)
        await service.servicer.drain()
        assert (await stream.hear()).ending
        refused = await stream.ask(request(api.pod("late")))
        assert refused.status.code == unavailable.value[0]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await Stream(channel).call.read()
        assert caught.value.code() is unavailable
        assert (await idle.hear()).ending
        assert await idle.call.read() is grpc.aio.EOF
        last = await stream.hear()
        assert (last.id, last.outcome) == (1, pb.OUTCOME_BOUND)
        assert await stream.call.read() is grpc.aio.EOF
    assert api.node_of("late") is None


async def test_a_session_that_is_open_does_not_keep_a_binder_from_ending(
    kubeconfig: Path, api: Api
) -> None:
    settings = settings_for(kubeconfig, shutdown_grace=60)
    async with (
        AsyncExitStack() as stack,
        asyncio.timeout(50),  # less than its grace
        running(binder_service(settings), settings) as service,
    ):
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(service.grpc))
        assert (await Stream(channel).ask(request(api.pod()))).outcome == pb.OUTCOME_BOUND
