"""The client of the API server, and times as it writes them."""

import asyncio
import gzip
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from aiohttp import web

from moorage_host.kube import (
    KubeAnswerError,
    KubeClient,
    KubeStatusError,
    KubeUnreachableError,
    micro_time,
)
from moorage_host.kube import client as kube_client
from tests.host.kube.conftest import always


async def test_a_status_of_failure_is_returned_and_only_check_raises(serve: Any) -> None:
    status = {"kind": "Status", "code": 409, "reason": "Conflict", "message": "taken"}
    client: KubeClient = await serve(always(409, data=status, headers={"Retry-After": "7"}))
    response = await client.request("POST", "/api/v1/pods", body=b"{}", timeout=50)
    assert (response.status, response.ok) == (409, False)
    with pytest.raises(KubeStatusError, match=r"POST /api/v1/pods.*409 Conflict: taken") as caught:
        response.check()
    error = caught.value
    assert (error.status, error.reason, error.message) == (409, "Conflict", "taken")
    assert error.retry_after == 7.0


async def test_a_list_is_read_page_by_page(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_client, "PAGE_SIZE", 2)
    asked: list[dict[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(dict(request.query))
        if "continue" in request.query:
            return web.json_response({"metadata": {"resourceVersion": "9"}, "items": [3]})
        metadata = {"resourceVersion": "9", "continue": "2"}
        return web.json_response({"metadata": metadata, "items": [1, 2]})

    client: KubeClient = await serve(handler)
    items = await client.items("/api/v1/pods", query={"labelSelector": "a=b"}, timeout=50)
    assert [bytes(item) for item in items] == [b"1", b"2", b"3"]
    first = {"limit": "2", "labelSelector": "a=b"}
    assert asked == [first, {**first, "continue": "2"}]


async def test_an_error_page_that_is_no_status_is_quoted(serve: Any) -> None:
    client: KubeClient = await serve(always(502, text="<html>bad gateway</html>"))
    with pytest.raises(KubeStatusError, match="bad gateway"):
        (await client.request("GET", "/", timeout=50)).check()


async def test_redirects_are_not_followed(serve: Any) -> None:
    client: KubeClient = await serve(always(302, headers={"Location": "/elsewhere"}))
    assert (await client.request("POST", "/x", body=b"{}", timeout=50)).status == 302


async def test_a_post_arrives_as_it_was_given_and_keeps_its_connection(serve: Any) -> None:
    seen: list[Any] = []
    connections = set()

    async def handler(request: web.Request) -> web.Response:
        connections.add(request.transport)
        seen.append((request.method, request.raw_path, await request.read()))
        seen.append({name: request.headers[name] for name in ("Content-Type", "User-Agent")})
        status = 201 if len(seen) == 2 else 409
        return web.json_response({"reason": "Conflict"}, status=status)

    client: KubeClient = await serve(handler)
    assert (await client.post("/api/v1/pods/a%20b/binding", b"{}")).check().status == 201
    with pytest.raises(KubeStatusError, match="409 Conflict"):
        (await client.post("/api/v1/pods/c/binding", b"x" * 100_000)).check()
    assert (await client.request("POST", "/x", body=b"{}", timeout=50)).status == 409
    assert seen[0] == ("POST", "/prefix/api/v1/pods/a%20b/binding", b"{}")
    assert seen[1] == {"Content-Type": "application/json", "User-Agent": "moorage"}
    assert seen[2] == ("POST", "/prefix/api/v1/pods/c/binding", b"x" * 100_000)
    assert len(connections) == 1


async def test_a_post_that_is_given_up_leaves_no_answer_to_the_next(serve: Any) -> None:
    release = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        if request.path.endswith("slow"):
            await release.wait()
        return web.Response(text=request.path)

    client: KubeClient = await serve(handler)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await client.post("/slow", b"{}")
    release.set()
    assert (await client.post("/fast", b"{}")).body == b"/prefix/fast"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Len", b"nonsense\r\n\r\n"])
async def test_a_request_without_a_whole_answer_is_unreachable(serve: Any, answer: bytes) -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.transport
        request.transport.write(answer)
        request.transport.close()
        return web.Response()

    client: KubeClient = await serve(handler)
    for sent in (client.post("/x", b"{}"), client.request("POST", "/x", body=b"{}", timeout=50)):
        with pytest.raises(KubeUnreachableError, match="POST /x"):
            await sent


async def test_no_path_can_add_a_line_to_a_post(serve: Any) -> None:
    seen = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers.get("X-Evil"))
        return web.Response()

    client: KubeClient = await serve(handler)
    with suppress(Exception):
        await client.post("/x HTTP/1.1\r\nX-Evil: yes\r\nA: b", b"{}")
    assert "yes" not in seen


async def test_a_stream_gives_lines_however_they_are_cut(serve: Any) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in (b"one\ntw", b"o\n", b"\n", b"x" * 5_000_000, b"\nunfinished"):
            await response.write(part)
        return response

    client: KubeClient = await serve(handler)
    lines = [line async for line in client.stream_lines("/w", query={"watch": "1"}, silence=5)]
    assert lines == [b"one", b"two", b"x" * 5_000_000, b"unfinished"]


async def test_a_line_that_never_ends_is_silence(serve: Any) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.02)

    client: KubeClient = await serve(handler)
    with pytest.raises(TimeoutError, match="nothing heard from"):
        await anext(client.stream_lines("/w", query={}, silence=0.3))


@pytest.mark.parametrize("way", ["request", "items", "post", "stream_lines"])
async def test_an_answer_that_is_too_long_is_not_read(
    serve: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Compressed, so that it is its length in memory which counts."""
    monkeypatch.setattr(kube_client, "LONGEST_BODY", 100_000)
    monkeypatch.setattr(kube_client, "LONGEST_LINE", 100_000)
    body = gzip.compress(b" " * 20_000_000)

    client: KubeClient = await serve(always(body=body, headers={"Content-Encoding": "gzip"}))
    calls: dict[str, Any] = {
        "request": lambda: client.request("GET", "/w", timeout=50),
        "items": lambda: client.items("/w", timeout=50),
        "post": lambda: client.post("/w", b"{}"),
        "stream_lines": lambda: anext(client.stream_lines("/w", query={}, silence=5)),
    }
    with pytest.raises(KubeAnswerError, match="of more than 100000 bytes"):
        await calls[way]()


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"items": []}', b'{"metadata": {}, "items": []}', b"<html>", b'"\xff"', b"[" * 9999],
)
async def test_what_is_no_list_is_not_taken_for_an_empty_one(serve: Any, body: bytes) -> None:
    client: KubeClient = await serve(always(body=body, content_type="application/json"))
    with pytest.raises(KubeAnswerError, match="the answer is no list"):
        await client.items("/api/v1/pods", timeout=50)


def test_a_micro_time_has_six_digits_even_at_a_full_second_and_is_in_utc() -> None:
    east = timezone(timedelta(hours=2))
    assert micro_time(datetime(2026, 1, 2, 3, 4, 5, 0, east)) == "2026-01-02T01:04:05.000000Z"
