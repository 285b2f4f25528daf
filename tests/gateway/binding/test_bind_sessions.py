"""Binds go over one stream to the binder, and whatever becomes of it costs no bind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import grpc.aio
import pytest
from prometheus_client import REGISTRY

from cli.up.processes import free_ports
from gateway.binding.client import BinderClient, BinderError
from moorage.v1 import binder_pb2 as pb
from moorage.v1 import binder_pb2_grpc
from moorage_host.tls.security import LOOPBACK
from tools.chaos.link import Link
from tools.inprocess.gateway import Gateway, bind, binder_service, gateway, plane, pod
from tools.waiting import until

BINDINGS = ("create", "pods/binding")


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@asynccontextmanager
async def binding(folder: Path, port: int, **settings: Any) -> AsyncIterator[Gateway]:
    async with gateway(folder, binder=f"127.0.0.1:{port}", config=None, **settings) as process:
        await process.node("n1")
        yield process


@pytest.fixture
async def process(tmp_path: Path, port: int) -> AsyncIterator[Gateway]:
    async with binding(tmp_path, port) as process:
        yield process


def begin(process: Gateway, *names: str) -> list[asyncio.Task[str]]:
    pods = [process.api.pod(name, schedulerName="moorage") for name in names]
    return [asyncio.create_task(bind(process, each)) for each in pods]


async def begin_known(process: Gateway, name: str, *, others: int = 0) -> asyncio.Task[str]:
    """Begin to bind a new pod that the gateway has seen; *others* were bound before."""
    process.api.pod(name, schedulerName="moorage")
    process.api.pod("last", nodeName="n1")  # once it is seen, so is the one before
    await until(lambda: process.sample("moorage_cache_size", type="pods") == others + 1)
    return asyncio.create_task(bind(process, process.api.read_pod(name)))


async def bind_behind_its_back(process: Gateway, name: str) -> None:
    path = f"{process.api.server.url}/api/v1/namespaces/default/pods/{name}/binding"
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}}
    async with process.session.post(path, json=body) as response:
        assert response.status == 201


async def bound(process: Gateway, name: str) -> None:
    """Bind a new pod, as often as that takes."""
    obj = process.api.pod(name, schedulerName="moorage")
    while await bind(process, obj):
        pass


def assumed(process: Gateway) -> float:
    return process.sample("moorage_cache_size", type="assumed_pods")


def calls(method: str) -> float:
    labels = {"grpc_service": "moorage.v1.BinderService", "grpc_method": method}
    return REGISTRY.get_sample_value("grpc_server_handling_seconds_count", labels) or 0.0


async def test_many_binds_share_a_stream(tmp_path: Path, port: int, process: Gateway) -> None:
    before = calls("Bind"), calls("Session")
    names = [f"p{number}" for number in range(50)]
    async with binder_service(tmp_path, port=port):
        assert set(await asyncio.gather(*begin(process, *names))) == {""}
    assert all(process.api.node_of(name) == "n1" for name in names)
    assert (calls("Bind"), calls("Session")) == (before[0], before[1] + 1)


async def test_binds_wait_for_the_first_binder(tmp_path: Path, port: int, process: Gateway) -> None:
    waiting = await begin_known(process, "a")
    await until(lambda: assumed(process) == 1)
    async with binder_service(tmp_path, port=port):
        assert await waiting == ""


async def test_a_pod_that_the_watch_has_not_shown_counts_from_the_begin_of_its_bind(
    tmp_path: Path,
) -> None:
    whole_node = {"name": "c", "resources": {"requests": {"cpu": "4"}}}
    late, next_one = (pod(name, containers=[whole_node]) for name in ("late", "next"))
    async with plane(tmp_path, nodes=("n1",), http_timeout=2.0) as process:
        assert (await process.filter(late, "n1"))["NodeNames"] == ["n1"]
        bind_of_late = asyncio.create_task(bind(process, late))
        await until(lambda: assumed(process) == 1)
        assert (await process.filter(next_one, "n1"))["NodeNames"] == []
        bind_of_late.cancel()


async def test_binds_that_a_binder_leaves_behind_are_shown_by_the_watch(
    tmp_path: Path, port: int, process: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.binding.unknown.WATCH_SECONDS", 60.0)
    posts = process.api.count(*BINDINGS, delay_seconds=0.3)
    async with binder_service(tmp_path, port=port):  # without grace: its streams break
        binds = begin(process, "a", "b", "c")
        await until(lambda: posts() == 3)
    assert await asyncio.gather(*binds) == ["", "", ""]
    assert posts() == 3
    assert [process.api.node_of(name) for name in "abc"] == ["n1"] * 3


async def test_a_bind_that_a_binder_has_lost_is_done_by_the_next(
    tmp_path: Path, port: int, process: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.binding.unknown.WATCH_SECONDS", 0.1)
    posts = process.api.count(*BINDINGS)
    async with odd_binder(port, "silent") as odd:
        [lost] = begin(process, "lost")
        await until(lambda: odd.streams == [["lost"]])
    async with binder_service(tmp_path, port=port):
        assert await lost == ""
    assert posts() == 1


async def test_a_binder_that_ends_answers_its_binds_and_the_next_does_the_others(
    tmp_path: Path, port: int, process: Gateway
) -> None:
    posts = process.api.count(*BINDINGS, delay_seconds=0.5)
    first = binder_service(tmp_path, port=port, grace=10)
    await first.__aenter__()
    [early] = begin(process, "early")
    await until(lambda: posts() == 1)
    ending = asyncio.create_task(first.__aexit__(None, None, None))
    await asyncio.wait([early])
    [late] = begin(process, "late")
    await ending
    async with binder_service(tmp_path, port=port):
        assert (await early, await late) == ("", "")
    assert posts() == 2  # neither was begun anew


async def test_a_bind_that_nobody_takes_keeps_its_place_and_is_never_sent(
    tmp_path: Path, port: int
) -> None:
    async with binding(tmp_path, port, http_timeout=1.0) as process:
        async with binder_service(tmp_path, port=port):
            await bound(process, "before")
        failing = await begin_known(process, "failing", others=1)
        assert await failing == "binder service: the binder is not reached"
        assert assumed(process) == 1
        posts = process.api.count(*BINDINGS)
        async with binder_service(tmp_path, port=port):
            await bound(process, "after")
        assert process.api.node_of("failing") is None
        assert posts() == 1


@pytest.mark.parametrize("outcome", ["unbound", "bound"])
async def test_the_api_server_is_asked_how_a_bind_ended(
    tmp_path: Path, port: int, outcome: str
) -> None:
    async with binding(tmp_path, port, http_timeout=2.0, unknown_bind_wait=0.1) as process:
        async with binder_service(tmp_path, port=port):
            await bound(process, "before")
        failing = await begin_known(process, "failing", others=1)
        await until(lambda: assumed(process) == 1)
        if outcome == "bound":  # by what arrives late, and the watch does not show it
            process.api.fault("watch", "pods", drop=True, times=1000)
            process.api.faults.drop_watches()
            await bind_behind_its_back(process, "failing")
        assert await failing == "binder service: the binder is not reached"
        await until(lambda: process.sample("moorage_settled_binds_total", outcome=outcome) == 1)
        assert assumed(process) == (outcome == "bound")


Oddity = Literal["silent", "without headers", "ending", "lost"]


class Odd(binder_pb2_grpc.BinderServiceServicer):
    """A binder whose first stream answers no bind; its others work, or refuse after a lost one."""

    def __init__(self, oddity: Oddity) -> None:
        self.oddity = oddity
        self.streams: list[list[str]] = []

    async def Bind(self, request: Any, context: Any) -> Any:
        raise AssertionError

    def FollowState(self, request_iterator: Any, context: Any) -> Any:
        raise AssertionError

    async def Barrier(self, request: Any, context: Any) -> Any:
        raise AssertionError

    async def RetryPods(self, request: Any, context: Any) -> Any:
        raise AssertionError

    async def ListPlugins(self, request: Any, context: Any) -> Any:
        return pb.BinderServiceListPluginsResponse()

    async def Session(
        self, request_iterator: AsyncIterator[pb.BinderServiceSessionRequest], context: Any
    ) -> AsyncIterator[pb.BinderServiceSessionResponse]:
        seen: list[str] = []
        self.streams.append(seen)
        oddity = self.oddity if len(self.streams) == 1 else ""
        if oddity != "without headers":
            await context.send_initial_metadata(())
        if oddity == "ending":
            yield pb.BinderServiceSessionResponse(ending=True)
        async for request in request_iterator:
            seen.append(request.bind.name)
            if oddity == "lost":
                return
            answer = pb.BinderServiceSessionResponse(id=request.id)
            if oddity == "ending" and len(seen) > 1:
                answer.status.code = grpc.StatusCode.UNAVAILABLE.value[0]
            if self.oddity == "lost":
                answer.status.code = grpc.StatusCode.ABORTED.value[0]
            if not oddity or len(seen) > 1:
                yield answer


@asynccontextmanager
async def odd_binder(port: int, oddity: Oddity) -> AsyncIterator[Odd]:
    server, servicer = grpc.aio.server(), Odd(oddity)
    binder_pb2_grpc.add_BinderServiceServicer_to_server(servicer, server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield servicer
    finally:
        await server.stop(None)


@pytest.mark.parametrize("oddity", ["silent", "without headers"])
async def test_a_binder_that_hangs_costs_the_binds_that_it_has_and_no_more(
    tmp_path: Path, port: int, oddity: Oddity
) -> None:
    async with (
        odd_binder(port, oddity) as binder,
        binding(tmp_path, port, http_timeout=2.0) as process,
    ):
        hung = await begin_known(process, "hung")
        assert await hung == "binder service: the binder did not answer in time"
        assert assumed(process) == 1
        [later] = begin(process, "later")
        assert await later == ""
    assert binder.streams == [["hung"] * (oddity == "silent"), ["later"]]


async def test_a_bind_that_is_refused_after_a_binder_was_lost_with_it_keeps_its_place(
    tmp_path: Path, port: int, process: Gateway
) -> None:
    async with odd_binder(port, "lost") as binder:
        refused = await begin_known(process, "refused")
        assert await refused == "binder service: "
        assert binder.streams == [["refused"], ["refused"]]
        assert assumed(process) == 1, "the first binder may have written it"


async def test_binds_without_a_binder_leave_nothing_behind() -> None:
    client, now = BinderClient("127.0.0.1:1", LOOPBACK), asyncio.get_running_loop().time
    with pytest.raises(BinderError, match="not reached"):
        await client.bind(pb.BinderServiceSessionRequest(), now() + 0.05)
    assert not client._streams.current().outbox
    await client.close()


async def test_the_binds_of_a_silent_connection_go_over_another_one(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.binding.client.KEEPALIVE", (0.2, 0.5))
    link = Link("gateway>binder", [port])
    await link.start()
    async with binding(tmp_path, link.port) as process, binder_service(tmp_path, port=port):
        await bound(process, "before")
        link.freeze()
        [later] = begin(process, "later")
        assert await later == ""
        await link.stop()


async def test_no_bind_waits_for_those_of_a_binder_that_ends(tmp_path: Path, port: int) -> None:
    async with (
        odd_binder(port, "ending") as binder,
        binding(tmp_path, port, http_timeout=2.0) as process,
    ):
        [slow] = begin(process, "slow")
        await until(lambda: binder.streams == [["slow"]])
        [later] = begin(process, "later")
        assert await later == ""
        assert not slow.done()
        assert (await slow).endswith("in time")  # on a busy machine the gateway's own end is first
    assert binder.streams[1] == ["later"]
