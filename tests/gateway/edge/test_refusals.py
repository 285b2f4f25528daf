"""What the extender's port refuses: other pages, names and types, and what cannot be read."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from prometheus_client import REGISTRY

from gateway.cycle import Cycle
from tools.inprocess.edge import (
    CHUNKED_HEAD,
    Filtered,
    Held,
    ScriptedCycles,
    ServedEdge,
    Wire,
    go_request,
    names_args,
    node,
    nodes_args,
    pod,
    serving,
    text,
)

BODY = text(names_args("a", "b")).encode()
CALL = go_request("POST", "/filter", BODY)
BIND = b'{"PodName":"web","PodNamespace":"default","PodUID":"u","Node":"a"}'


def refused(reason: str) -> float:
    labels = {"port": "extender", "reason": reason}
    return REGISTRY.get_sample_value("moorage_http_refused_total", labels) or 0.0


def bind(*lines: str) -> bytes:
    head = ("POST /bind HTTP/1.1", *lines, f"Content-Length: {len(BIND)}")
    return "\r\n".join([*head, "", ""]).encode() + BIND


HOST, JSON = "Host: gateway.moorage.svc:8888", "Content-Type: application/json"


@pytest.mark.parametrize(
    ("lines", "status", "reason", "advice"),
    [
        ((HOST, JSON, "Origin: http://evil.example"), 403, "origin", "web pages"),
        ((HOST, JSON, "Origin: null"), 403, "origin", "web pages"),
        ((HOST, JSON, "Sec-Fetch-Site: cross-site"), 403, "origin", "web pages"),
        (("Host: evil.example:8888", JSON), 421, "host", "--allowed-host"),
        (("Host: svc", JSON), 421, "host", "--allowed-host"),
        (("Host: localhost.evil.example", JSON), 421, "host", "--allowed-host"),
        (("Host: 127.0.0.1.evil.example", JSON), 421, "host", "--allowed-host"),
        ((HOST, "Content-Type: text/plain"), 415, "content_type", "application/json"),
        ((HOST,), 415, "content_type", "application/json"),
    ],
)
async def test_a_web_page_cannot_bind_pods(
    lines: Sequence[str], status: int, reason: str, advice: str
) -> None:
    before = refused(reason)
    async with serving() as edge, edge.connect() as wire:
        await wire.send(bind(*lines))
        answer = await wire.answer()
        assert (answer.status, refused(reason)) == (status, before + 1)
        assert advice in answer.json["error"]
        assert await wire.closed_by_server()
    assert not edge.cycles.binds


@pytest.mark.parametrize("lines", [(JSON,), (HOST, HOST, JSON), ("Host: ", JSON)])
async def test_a_call_without_exactly_one_host_is_refused(lines: Sequence[str]) -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(bind(*lines))
        assert (await wire.answer()).status in (400, 421)
    assert not edge.cycles.binds


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8888",
        "[::1]:8888",
        "10.0.0.7",
        "localhost:8888",
        "GATEWAY.moorage.svc.cluster.local.:8888",
        "gateway",
        "gateway.moorage",
        "my.own.name",
        "a.example.com",
    ],
)
async def test_addresses_and_allowed_names_are_hosts(host: str) -> None:
    names = (*serving_defaults(), "my.own.name", "*.example.com")
    async with serving(allowed_host=names) as edge, edge.connect() as wire:
        await wire.send(bind(f"Host: {host}", f"{JSON}; charset=utf-8"))
        assert (await wire.answer()).status == 200
    assert edge.cycles.binds


def serving_defaults() -> tuple[str, ...]:
    from gateway.edge import EdgeSettings

    return EdgeSettings().allowed_host


async def test_a_head_that_does_not_arrive_in_time_ends_its_connection() -> None:
    before = refused("head_time")
    async with (
        serving(http_head_time=0.1) as edge,
        edge.connect() as slow,
        edge.connect() as silent,
        edge.connect() as used,
    ):
        assert (await used.post("/filter", BODY)).status == 200
        await slow.send(CALL[:20])
        assert await closed(slow)
        await used.send(CALL[:20])
        assert await closed(used)
        assert refused("head_time") == before + 2
        assert (await silent.post("/filter", BODY)).status == 200


async def test_a_head_with_too_many_or_too_long_headers_is_refused() -> None:
    before = refused("head")
    many = [f"X-{n}: 1" for n in range(40)]
    async with serving() as edge:
        for lines in (many, [f"X-Long: {'x' * 9000}"]):
            async with edge.connect() as wire:
                await wire.send(bind(HOST, JSON, *lines))
                assert (await wire.answer()).status == 400
                assert await closed(wire)
    assert refused("head") == before + 2


async def test_half_open_connections_do_not_keep_a_caller_out() -> None:
    before = refused("connections")
    async with serving(http_connections=3) as edge, AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(edge.connect()) for _ in range(3)]
        assert (await wires[0].post("/filter", BODY)).status == 200
        for wire in wires[1:]:
            await wire.send(CALL[:20])
        await edge_has_read(edge, wires[0])
        for _ in range(2):
            late = await stack.enter_async_context(edge.connect())
            assert (await late.post("/filter", BODY)).json["NodeNames"] == ["a", "b"]
        assert await closed(wires[1])
        assert await closed(wires[2])
        assert (await wires[0].post("/filter", BODY)).status == 200
        assert refused("connections") == before + 2


async def test_connections_with_calls_are_kept_and_further_ones_refused() -> None:
    async with waiting_calls(2, http_connections=2) as (edge, wires, go_on):
        async with edge.connect() as late:
            assert await closed(late)
        go_on.set()
        for wire in wires:
            assert (await wire.answer()).status == 200


async def test_a_caller_with_many_calls_does_not_keep_another_out() -> None:
    async with waiting_calls(3, http_connections=3) as (edge, wires, go_on):
        other = await asyncio.open_connection("127.0.0.1", edge.port, local_addr=("127.0.0.2", 0))
        second = Wire(reader=other[0], writer=other[1])
        assert await closed(wires[0])
        go_on.set()
        assert (await second.post("/filter", BODY)).json["NodeNames"] == ["a", "b"]
        for wire in wires[1:]:
            assert (await wire.answer()).status == 200
        await second.close()


@asynccontextmanager
async def waiting_calls(
    calls: int, http_connections: int
) -> AsyncIterator[tuple[ServedEdge, list[Wire], asyncio.Event]]:
    go_on, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def wait(call: Cycle) -> Filtered:
        begun.release()
        await go_on.wait()
        return Filtered(feasible=call.nodes)

    cycles = ScriptedCycles(on_filter=wait)
    async with serving(cycles, http_connections=http_connections) as edge, AsyncExitStack() as s:
        wires = [await s.enter_async_context(edge.connect()) for _ in range(calls)]
        for wire in wires:
            await wire.send(CALL)
            await begun.acquire()
        yield edge, wires, go_on


async def edge_has_read(edge: ServedEdge, wire: Wire) -> None:
    """Wait until the edge has read what was sent before: it answers a call that came later."""
    del edge
    assert (await wire.post("/filter", BODY)).status == 200


async def closed(wire: Wire) -> bool:
    try:
        return await wire.closed_by_server()
    except ConnectionError:
        return True


ARGS = names_args("a")
LIST_OF_NODES = nodes_args("a", "b")


def with_pod(**metadata: Any) -> dict[str, Any]:
    return ARGS | {"Pod": pod() | {"metadata": pod()["metadata"] | metadata}}


def with_items(*items: Any) -> dict[str, Any]:
    return LIST_OF_NODES | {"Nodes": {"metadata": {}, "items": list(items)}}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("", "truncated"),
        ("<html>", "malformed"),
        ("\ufeff" + text(ARGS), "malformed"),
        (text(ARGS) + "garbage", "trailing characters"),
        (text(ARGS)[:-1], "truncated"),
        (text(ARGS)[:-1] + "]", "malformed"),
        (text(ARGS) + "]}", "trailing characters"),
        ("null", "Expected `object`, got `null` - at `$`"),
        ("[]", "Expected `object`, got `array` - at `$`"),
        ("{}", "missing required field `Pod`"),
        ({"Pod": None, "NodeNames": ["a"]}, "- at `$.Pod`"),
        ({"Pod": "web-0", "NodeNames": ["a"]}, "Expected `object`, got `str` - at `$.Pod`"),
        (with_pod(uid=""), "`$.Pod.metadata.uid` is empty"),
        (with_pod(name=""), "`$.Pod.metadata.name` is empty"),
        (with_pod(uid=7), "Expected `str`, got `int` - at `$.Pod.metadata.uid`"),
        (with_pod(labels={"a": 1}), "`$.Pod.metadata.labels[...]`"),
        (ARGS | {"NodeNames": "a"}, "Expected `array`, got `str` - at `$.NodeNames`"),
        (ARGS | {"NodeNames": ["a", 1.5]}, "Expected `str`, got `float` - at `$.NodeNames[1]`"),
        (ARGS | {"NodeNames": ["a", None]}, "Expected `str`, got `null` - at `$.NodeNames[1]`"),
        ('{"Pod":' + text(pod()) + ',"Nodes":null,"NodeNames":[NaN]}', "malformed"),
        (LIST_OF_NODES | {"Nodes": []}, "Expected `object | null`, got `array` - at `$.Nodes`"),
        (with_items(node("a"), 3), "- at `$.Nodes.items[1]`"),
        (with_items(node("a"), {}), "name is empty - at `$.Nodes.items[1].metadata.name`"),
        (with_items({"metadata": {"name": 1}}), "- at `$.Nodes.items[0].metadata.name`"),
        (text(nodes_args("a")).encode().replace(b'"spec":{}', b'"x":"\xff"'), "utf-8"),
        (text(names_args("?")).encode().replace(b"?", b"\xff"), "at `$.NodeNames"),
    ],
)
async def test_filter_names_the_mistake(body: Any, problem: str) -> None:
    async with serving() as edge:
        answer = await edge.post("/filter", body)
        assert edge.cycles.scheduling == []
        assert edge.count("moorage_extender_requests_total", verb="filter", result="bad_request")
    assert answer.status == 200
    assert answer.json["Error"].startswith("moorage: the request was not understood: ")
    assert problem in answer.json["Error"]
    assert answer.json["NodeNames"] is None


@pytest.mark.parametrize("body", ["", "[]", '{"PodName":1}', "\ufeff{}", '{"Node":NaN}'])
async def test_bind_reports_it_in_its_error_field(body: str) -> None:
    async with serving() as edge:
        answer = await edge.post("/bind", body)
        assert edge.cycles.binds == []
    assert answer.status == 200
    assert answer.json["Error"].startswith("moorage: the request was not understood: ")


DEEP = '{"a":' * 20_000 + "1" + "}" * 20_000


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        '{"Pod":' + DEEP + ',"NodeNames":["a"]}',
        '{"Pod":' + text(pod())[:-1] + ',"more":' + DEEP + '},"Nodes":null,"NodeNames":["a"]}',
        '{"Pod":' + text(pod()) + ',"Nodes":{"items":[' + DEEP + "]}}",
        '{"Pod":null,"NodeNames":' + "[" * 20_000 + "]" * 20_000 + "}",
        text({"x" * 100_000: 1}),
        text(ARGS | {"x" * 100_000: 1}),
    ],
    ids=["body", "pod", "in pod", "node", "names", "key", "more"],
)
@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
async def test_deep_and_long_bodies_are_refused_in_a_few_words(
    verb: str, body: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving() as edge:
        answer = await edge.post(f"/{verb}", body)
        assert not edge.count("moorage_extender_requests_total", verb=verb, result="internal")
    assert answer.status in (200, 400)
    assert len(answer.body) < 1000
    assert len("".join(capsys.readouterr())) < 1000


@pytest.mark.parametrize(
    ("body", "reason"), [("{", "malformed"), ("{}", "invalid"), (" " * 3000, "too_large")]
)
async def test_what_is_wrong_is_counted_by_kind(body: str, reason: str) -> None:
    async with serving(body_limit=2000) as edge:
        await edge.post("/filter", body)
        counted = edge.count("moorage_extender_bad_requests_total", verb="filter", reason=reason)
    assert counted == 1


REFUSED = "moorage_extender_bad_requests_total"


async def test_a_body_that_does_not_fit_beside_others_is_refused_until_they_are_answered() -> None:
    held = Held()
    cycles = ScriptedCycles(on_filter=held)
    async with serving(cycles, body_bytes_in_flight=len(BODY) + 1) as edge:
        async with edge.connect() as first, edge.connect() as second, edge.connect() as chunked:
            await first.send(CALL)
            await held.begun.wait()
            refused = await second.post("/filter", BODY)
            assert "may have: try again" in refused.json["Error"]
            await chunked.send(CHUNKED_HEAD + b"%x\r\n%s\r\n" % (len(BODY), BODY))
            assert "may have: try again" in (await chunked.answer()).json["Error"]
            assert edge.count(REFUSED, verb="filter", reason="in_flight") == 2
            held.go_on.set()
            assert (await first.answer()).json["NodeNames"] == ["a", "b"]
        async with edge.connect() as third:
            assert (await third.post("/filter", BODY)).json["NodeNames"] == ["a", "b"]


async def test_a_body_fits_alone_whatever_the_limit_on_all() -> None:
    async with serving(body_bytes_in_flight=1) as edge, edge.connect() as wire:
        for _ in range(2):
            assert (await wire.post("/filter", BODY)).json["NodeNames"] == ["a", "b"]
