"""What the heads of requests may say that kube-scheduler never does, and those of answers say."""

from email.utils import parsedate_to_datetime

import pytest

from tests.gateway.edge.support import Wire, pod, serving, text

BODY = text({"Pod": pod(), "Nodes": None, "NodeNames": ["a", "b"]}).encode()


def request(path: str = "/filter", *lines: str, version: str = "1.1") -> bytes:
    head = (f"POST {path} HTTP/{version}", "Host: gateway", f"Content-Length: {len(BODY)}", *lines)
    return ("\r\n".join(head) + "\r\n\r\n").encode()


async def test_a_caller_that_waits_for_leave_to_send_its_body_gets_it() -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(request("/filter", "Expect: 100-continue"))
        assert await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await wire.send(BODY)
        assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


async def test_a_caller_that_expects_anything_else_is_told_that_it_cannot() -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(request("/filter", "Expect: the-impossible") + BODY)
        assert (await wire.answer()).status == 417


async def filtered(wire: Wire, *lines: str, version: str) -> dict[str, str]:
    await wire.send(request("/filter", *lines, version=version) + BODY)
    answer = await wire.answer()
    assert answer.json["NodeNames"] == ["a", "b"]
    return answer.headers


async def test_old_callers_are_answered_on_one_connection_each() -> None:
    async with serving() as edge, edge.connect() as wire:
        headers = await filtered(wire, "Connection: keep-alive", version="1.0")
        assert headers["connection"] == "close"
        assert await wire.closed_by_server()


async def test_a_caller_that_wants_to_leave_is_let_go() -> None:
    async with serving() as edge, edge.connect() as wire:
        headers = await filtered(wire, "Connection: close", version="1.1")
        assert headers["connection"] == "close"
        assert await wire.closed_by_server()


async def test_answers_say_what_they_are_and_of_when() -> None:
    async with serving() as edge, edge.connect() as wire:
        headers = await filtered(wire, version="1.1")
    assert headers["content-type"] == "application/json"
    assert parsedate_to_datetime(headers["date"]).tzinfo is not None
    assert "connection" not in headers


@pytest.mark.parametrize("path", ["/filter?timeout=5s", "/filter/", "/filter/?a=b", "/%66ilter"])
async def test_other_spellings_of_a_path_lead_to_the_same(path: str) -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(request(path) + BODY)
        assert (await wire.answer()).json["NodeNames"] == ["a", "b"]
