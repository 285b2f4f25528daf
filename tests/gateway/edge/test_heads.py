"""Headers of requests that kube-scheduler never sends, and the headers of responses."""

from email.utils import parsedate_to_datetime

import pytest

from tools.inprocess.edge import Wire, pod, serving, text

BODY = text({"Pod": pod(), "Nodes": None, "NodeNames": ["a", "b"]}).encode()

HEADERS = ("Host: gateway", "Content-Type: application/json")


def request(path: str = "/filter", *lines: str, version: str = "1.1") -> bytes:
    head = (f"POST {path} HTTP/{version}", *HEADERS, f"Content-Length: {len(BODY)}", *lines)
    return ("\r\n".join(head) + "\r\n\r\n").encode()


async def test_a_caller_that_waits_for_leave_to_send_its_body_gets_it() -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(request("/filter", "Expect: 100-continue"))
        assert await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await wire.send(BODY)
        assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


async def test_a_caller_that_expects_anything_else_is_refused() -> None:
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


async def test_responses_have_their_type_and_their_date() -> None:
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


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"Content-Length: -1",
        b"Content-Length: 2\r\nContent-Length: 3",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"X-Long: " + b"x" * 10_000,
    ],
    ids=["no header", "negative length", "two lengths", "length and chunks", "long header"],
)
async def test_a_malformed_head_is_a_400_and_the_end_of_its_connection_only(line: bytes) -> None:
    async with serving() as edge, edge.connect() as wire, edge.connect() as other:
        await wire.send(b"POST /filter HTTP/1.1\r\nHost: gateway\r\n%b\r\n\r\n" % line + BODY)
        assert (await wire.answer()).status == 400
        assert await wire.closed_by_server()
        assert (await other.post("/filter", BODY)).status == 200
    assert len(edge.cycles.scheduling) == 1
