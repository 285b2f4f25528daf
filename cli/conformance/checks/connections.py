"""Connections: idle, abandoned, many, and how answers are framed."""

import asyncio
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from cli.conformance.checks.check import Check, Probe
from cli.conformance.client import IDLE_SECONDS, connected
from cli.conformance.exchange import Answer, Request
from cli.conformance.findings import Severity

CALLERS = 8
"""kube-schedulers at the same time, or calls of one that gave up on earlier ones."""

MARGIN = 2.0
"""Seconds for which a connection must outlast Go's."""


def connection_checks() -> Iterator[Check]:
    """Yield the checks of connections, and those of every answer."""
    rules = {
        "http-redirect": "nothing is redirected",
        "http-keep-alive": "connections stay open",
        "http-framing": "answers have a Content-Length and are not chunked",
        "http-in-time": "answers take less than 80 % of httpTimeout",
    }
    for name, about in rules.items():
        yield Check(name=name, about=about)
    yield Check(name="http-concurrent", about=f"{CALLERS} callers at the same time", run=concurrent)
    yield Check(
        name="http-abandoned",
        about=f"{CALLERS} calls whose caller goes away, then a good one",
        run=abandoned,
    )
    yield Check(
        name="http-chunked-request",
        about="a request without a Content-Length, as proxies send it",
        run=chunked_request,
    )
    yield Check(
        name="http-idle",
        about=f"a connection without a call for {IDLE_SECONDS + MARGIN:g} s: Go keeps it for "
        f"{IDLE_SECONDS:g} s",
        run=idle,
        is_slow=True,
    )


async def concurrent(probe: Probe) -> None:
    """Several kube-schedulers share an extender."""
    requests = [
        probe.requests.scheduling(verb, probe.requests.pod(f"caller-{number}"))
        for number in range(CALLERS)
        for verb in probe.offered("filter", "prioritize")
    ]
    await asyncio.gather(*(probe.ask("http-concurrent", request) for request in requests))


async def abandoned(probe: Probe) -> None:
    """After its timeout kube-scheduler closes the connection and goes on with the next pod."""
    for verb in probe.offered("filter", "prioritize")[:1]:
        request = probe.requests.scheduling(verb)
        for _ in range(CALLERS):
            _, writer = await connected(probe.client)
            writer.write(_head(probe, request) + request.body)
            writer.close()
        await probe.ask("http-abandoned", request)


async def chunked_request(probe: Probe) -> None:
    """kube-scheduler never sends one; a proxy between both may."""
    for verb in probe.offered("filter", "prioritize")[:1]:
        usual = probe.requests.scheduling(verb)
        request = Request(verb, usual.body, is_chunked=True)
        answer = await probe.send(request)
        if answer.failure or answer.status != 200:
            probe.report(
                "http-chunked-request",
                request,
                answer,
                Severity.STYLE,
                "always sends a Content-Length; a proxy may not",
            )


async def idle(probe: Probe) -> None:
    """A POST on a connection that the server closes at that time fails: Go does not repeat it."""
    for verb in probe.offered("filter", "prioritize", "preempt")[:1]:
        request = _idle_request(probe)
        reader, writer = await connected(probe.client)
        try:
            writer.write(_head(probe, request) + request.body)
            seconds = await _until_closed(reader)
        finally:
            writer.close()
        if seconds is not None:
            probe.report(
                "http-idle",
                request,
                Answer(),
                Severity.BREAKS,
                f"uses a connection again for {IDLE_SECONDS:g} s, and does not repeat a POST that "
                "ends in EOF because the server closes it just then: now and then a call fails",
                got=f"the server closes an idle connection after {seconds:.1f} s ({verb})",
            )


def _idle_request(probe: Probe) -> Request:
    verb = probe.offered("filter", "prioritize", "preempt")[0]
    if verb == "preempt":
        return probe.requests.preemption({probe.requests.nodes[0]: ["victim"]})
    return probe.requests.scheduling(verb)


async def _until_closed(reader: asyncio.StreamReader) -> float | None:
    """Return after how many seconds the server closes the connection, None if it keeps it."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(IDLE_SECONDS + MARGIN):
            while await reader.read(65536):
                began = time.monotonic()
    except TimeoutError:
        return None
    return time.monotonic() - began


def _head(probe: Probe, request: Request) -> bytes:
    url = urlsplit(probe.client.url(request.verb))
    lines = (
        f"POST {url.path or '/'} HTTP/1.1",
        f"Host: {url.netloc.rpartition('@')[2]}",
        "User-Agent: Go-http-client/1.1",
        f"Content-Length: {len(request.body)}",
        "Content-Type: application/json",
        "Accept-Encoding: gzip",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
