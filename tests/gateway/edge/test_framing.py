"""The bytes around the JSON: how they may be cut, and what keeps connections alive or ends them."""

import asyncio
import io
import json

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from gateway.cycle import Cycle
from gateway.edge import Edge, EdgeSettings, run_edge
from tools.inprocess.edge import (
    CHUNKED_HEAD,
    Filtered,
    Held,
    ScriptedCycles,
    ServedEdge,
    go_request,
    names_args,
    serving,
    text,
)

BODY = text(names_args("a", "b")).encode()
CALL = go_request("POST", "/filter", BODY)
HEAD = len(CALL) - len(BODY)
CHUNK = b"%x\r\n%s\r\n" % (len(BODY), BODY)
CHUNKED = CHUNKED_HEAD + CHUNK + b"0\r\n\r\n"


async def test_go_s_connection_outlives_every_kind_of_answer() -> None:
    calls = [
        ("POST", "/filter", BODY, 200),
        ("POST", "/filter", b"{}", 200),
        ("POST", "/prioritize", b"", 200),
        ("POST", "/preempt", b"{}", 400),
        ("POST", "/bind", b"[]", 200),
        ("GET", "/filter", b"", 405),
        ("POST", "/filters", BODY, 404),
        ("POST", "/filter", BODY, 200),
    ]
    async with serving() as edge, edge.connect() as wire:
        for method, path, body, status in calls:
            await wire.send(go_request(method, path, body))
            answer = await wire.answer()
            assert answer.status == status
            assert "connection" not in answer.headers
            if status != 200:
                assert answer.body == b""


@pytest.mark.parametrize("prefix", ["scheduler", "/scheduler", "/scheduler/"])
async def test_verbs_are_below_the_prefix(prefix: str) -> None:
    async with serving(extender_prefix=prefix) as edge:
        assert (await edge.post("/scheduler/filter", BODY)).status == 200
        assert (await edge.post("/scheduler/bind/", BODY)).status == 200
        assert (await edge.post("/filter", BODY)).status == 404


@pytest.mark.parametrize(
    "path", ["/", "/Filter", "/filter/a/b", "/bind/Binder", "/filter//", "/x%2Fy"]
)
async def test_an_unknown_path_is_a_404_without_a_body(path: str) -> None:
    async with serving() as edge:
        answer = await edge.post(path, BODY)
        counted = edge.count(
            "moorage_extender_bad_requests_total", verb="none", reason="unknown_path"
        )
    assert (answer.status, answer.body, counted) == (404, b"", 1)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/bind", "/prioritize/Fit", "/old"])
async def test_another_method_is_a_405_that_names_post(method: str, path: str) -> None:
    async with serving(extender_alias=("/old=preempt",)) as edge, edge.connect() as wire:
        await wire.send(go_request(method, path, b""))
        answer = await wire.answer()
    assert (answer.status, answer.headers["allow"], answer.body) == (405, "POST", b"")


@pytest.mark.parametrize("path", ["/filter", "/prioritize", "/preempt", "/bind"])
async def test_a_body_over_the_limit_is_a_413_and_the_end_of_the_connection(path: str) -> None:
    async with serving(body_limit=1000) as edge, edge.connect() as wire:
        await wire.send(go_request("POST", path, b" " * 1001))
        answer = await wire.answer()
        assert (answer.status, answer.body) == (413, b"")
        assert answer.headers["connection"] == "close"
        assert await wire.closed_by_server()


async def test_a_body_of_exactly_its_limit_is_read() -> None:
    async with serving(body_limit=len(BODY)) as edge:
        assert (await edge.post("/filter", BODY)).status == 200


JSON = {"Content-Type": "application/json"}


async def test_a_chunked_body_is_read_up_to_the_limit() -> None:
    async with serving(body_limit=len(BODY)) as edge:
        async with edge.connect() as wire:
            await wire.send(CHUNKED)
            assert (await wire.answer()).json["NodeNames"] == ["a", "b"]
        async with edge.connect() as wire:
            await wire.send(CHUNKED_HEAD + CHUNK + b"1\r\n \r\n0\r\n\r\n")
            assert (await wire.answer()).status == 413


async def test_a_badly_framed_body_is_an_error_and_the_end_of_the_connection() -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(CHUNKED_HEAD)
        await wire.send(b"5\r\n{}\r\nnonsense\r\n\r\n")
        answer = await wire.answer()
        assert answer.status in (200, 400)
        assert await wire.closed_by_server()


async def test_a_compressed_body_is_not_unpacked() -> None:
    async with serving() as edge, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{edge.port}/filter"
        async with session.post(url, data=BODY, headers=JSON, compress="gzip") as response:
            assert "not understood" in (await response.json())["Error"]


async def test_fourteen_megabytes_are_read_and_answered() -> None:
    fat = {"metadata": {"name": "n"}, "status": {"images": [{"names": ["x" * 1000]}] * 14}}
    items = [fat | {"metadata": {"name": f"n{index}"}} for index in range(1000)]
    args = {"Pod": names_args()["Pod"], "Nodes": {"items": items}, "NodeNames": None}
    async with serving() as edge, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{edge.port}/filter"
        async with session.post(
            url, data=io.BytesIO(text(args).encode()), headers=JSON
        ) as response:
            assert len(json.loads(await response.read())["Nodes"]["items"]) == 1000


async def test_a_slow_body_has_less_time_left_for_the_cycle() -> None:
    request = go_request("POST", "/filter", BODY)
    loop = asyncio.get_running_loop()
    async with serving(http_timeout=60.0) as edge, edge.connect() as wire:
        await wire.send(request[:-1])
        middle = loop.time()
        await wire.send(request[-1:])
        await wire.answer()
        (call,) = edge.cycles.scheduling
        assert call.deadline < loop.time() + 48.0
        assert call.deadline > middle + 40.0


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
async def test_a_call_is_cancelled_when_its_caller_hangs_up(verb: str) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(_: Cycle) -> Filtered:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    cycles = ScriptedCycles(on_filter=hang, on_prioritize=hang)  # type: ignore[arg-type]
    async with serving(cycles) as edge:
        async with edge.connect() as wire:
            await wire.send(go_request("POST", f"/{verb}", BODY))
            await begun.wait()
        await ended.wait()
        await edge.until_counted(verb=verb, result="cancelled")


async def test_a_caller_that_hangs_up_while_sending_is_no_failure_of_ours() -> None:
    async with serving() as edge:
        async with edge.connect() as wire:
            await wire.send(go_request("POST", "/filter", BODY)[:-10])
        await edge.until_counted(verb="filter", result="cancelled")


async def test_a_stopping_edge_serves_open_connections_and_asks_them_to_leave() -> None:
    registry = CollectorRegistry()
    edge = Edge(ScriptedCycles(), EdgeSettings(http_drain_time=30.0), registry)
    running = run_edge(edge, "127.0.0.1", 0)
    port = await running.__aenter__()
    served = ServedEdge(port=port, cycles=ScriptedCycles(), registry=registry)
    async with served.connect() as wire, asyncio.TaskGroup() as group:
        assert "connection" not in (await wire.post("/filter", BODY)).headers
        group.create_task(running.__aexit__(None, None, None))
        await refusing(port)
        answer = await wire.post("/filter", BODY)
        assert answer.json["NodeNames"] == ["a", "b"]
        assert answer.headers["connection"] == "close"
        assert await wire.closed_by_server()


async def refusing(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except (ConnectionRefusedError, ConnectionResetError):
            return
        writer.close()


async def test_idle_connections_live_as_long_as_the_setting_and_longer_than_go_s() -> None:
    async with serving(http_keep_alive=0.05) as edge, edge.connect() as wire:
        await wire.post("/filter", BODY)
        assert await wire.closed_by_server()
    assert EdgeSettings().http_keep_alive > 90


@pytest.mark.parametrize("cut", [1, 10, HEAD - 3, HEAD, HEAD + 1, len(CALL) - 1])
async def test_a_call_is_read_however_it_is_cut(cut: int) -> None:
    async with serving() as edge, edge.connect() as wire:
        for _ in range(2):
            await wire.send(CALL[:cut])
            await asyncio.sleep(0)
            await wire.send(CALL[cut:])
            assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


async def test_calls_that_come_before_the_answer_are_answered_in_turn() -> None:
    asked = [go_request("POST", "/filter", text(names_args(f"n{i}")).encode()) for i in range(5)]
    async with serving() as edge, edge.connect() as wire:
        await wire.send(b"".join(asked) + CALL[:HEAD])
        for index in range(5):
            assert (await wire.answer()).json["NodeNames"] == [f"n{index}"]
        await wire.send(BODY)
        assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


@pytest.mark.parametrize("other", [CHUNKED, CALL.replace(b"Accept-Encoding: gzip", b"X-Other: 1")])
async def test_calls_of_other_clients_may_come_on_the_same_connection(other: bytes) -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(CALL + other + CALL)
        for _ in range(3):
            assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


async def test_a_caller_that_is_still_sending_can_read_that_it_was_too_slow() -> None:
    async with serving(http_timeout=0.1) as edge, edge.connect() as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await wire.send(CALL[:-1])
        await edge.until_counted(verb="filter", result="bad_request")
        await wire.send(CALL[-1:])
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        answer = await wire.answer()
        assert "did not arrive in time" in answer.json["Error"]
        assert edge.count("moorage_extender_bad_requests_total", verb="filter", reason="slow_body")
        assert answer.headers["connection"] == "close"
        assert await wire.closed_by_server()
    assert not edge.cycles.scheduling


async def test_a_stopping_edge_finishes_what_it_has_begun() -> None:
    held = Held()
    edge_of_waiting = serving(ScriptedCycles(on_filter=held), shutdown_grace=60.0)
    edge = await edge_of_waiting.__aenter__()
    async with edge.connect() as idle, edge.connect() as busy, asyncio.TaskGroup() as group:
        await busy.send(CALL)
        await held.begun.wait()
        group.create_task(edge_of_waiting.__aexit__(None, None, None))
        async with asyncio.timeout(20):
            assert await idle.closed_by_server()
        held.go_on.set()
        answer = await busy.answer()
        assert answer.json["NodeNames"] == ["a", "b"]
        assert answer.headers["connection"] == "close"
        assert await busy.closed_by_server()


async def test_a_stopping_edge_does_not_wait_for_ever() -> None:
    begun = asyncio.Event()

    async def hang(_: Cycle) -> Filtered:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with asyncio.timeout(20):
        cycles = ScriptedCycles(on_filter=hang)
        async with serving(cycles, shutdown_grace=0.01) as edge, edge.connect() as wire:
            await wire.send(CALL)
            await begun.wait()
        assert await wire.closed_by_server()
    assert edge.count("moorage_extender_requests_total", verb="filter", result="cancelled")
