"""Raw bytes at the port that kube-scheduler calls; aiohttp reads them, and no reader of ours."""

import asyncio
from contextlib import AsyncExitStack, suppress

from tools.fuzz.targets.target import Target, require
from tools.inprocess.edge import ServedEdge, go_request, names_args, serving, text

_QUIET = 0.004  # seconds without a byte after which nothing more is expected
_GOOD = go_request("POST", "/filter", text(names_args("a")).encode())


class Http(Target):
    """A connection: whatever comes on it, it is answered or closed, and others are served."""

    name = "http"
    share = 12
    seconds = 8e-3
    tokens = (
        *(
            "POST /filter HTTP/1.1\r\n",
            "HTTP/1.0",
            "Content-Length: ",
            "Transfer-Encoding: chunked",
        ),
        *("Connection: close", "Expect: 100-continue", "Host: x", "\r\n\r\n", "\r\n", "0\r\n\r\n"),
        *("Content-Encoding: gzip", "Upgrade: h2c", "PRI * HTTP/2.0", "GET ", "/bind", "//", "%00"),
    )
    longest = 2048

    async def open(self, stack: AsyncExitStack) -> None:
        self._edge: ServedEdge = await stack.enter_async_context(serving(http_timeout=0.5))

    async def case(self, data: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._edge.port)
        try:
            writer.write(data)
            answer = await _read(reader)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        if answer:
            head, _, body = answer.partition(b"\r\n\r\n")
            require(head.startswith(b"HTTP/"), "no HTTP", answer)
            require(head.split(b" ")[1] != b"500", "an internal error", answer)
            require(b"Traceback" not in body, "a traceback", answer)
        async with self._edge.connect() as good:
            await good.send(_GOOD)
            require((await good.answer()).status == 200, "another call fails afterwards")
        self._edge.cycles.scheduling.clear()
        self._edge.cycles.binds.clear()
        self._edge.cycles.preempts.clear()


async def _read(reader: asyncio.StreamReader) -> bytes:
    answer = b""
    with suppress(TimeoutError, ConnectionError):
        while True:
            async with asyncio.timeout(_QUIET):
                part = await reader.read(65536)
            if not part:
                break
            answer += part
    return answer
