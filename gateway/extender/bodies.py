"""Takes bodies off the wire and puts answers on it."""

import time
from email.utils import formatdate

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from gateway.wire.errors import BadRequestError

_SLICE = 1 << 20  # bytes
_JSON = {"Content-Type": "application/json"}


class BodyTooLargeError(BadRequestError):
    """A body exceeds its limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body has more than {limit} bytes", reason="too_large")


async def read_body(request: web.BaseRequest, limit: int) -> bytes:
    """Return the body; raises BadRequestError when it is too large (in bytes) or badly framed."""
    if (request.content_length or 0) > limit:
        raise BodyTooLargeError(limit)
    content = request.content
    chunks, size = [], 0
    try:
        while not content.at_eof():
            chunks.append(await content.readany())
            size += len(chunks[-1])
            if size > limit:
                raise BodyTooLargeError(limit)
    except web.RequestPayloadError as error:
        raise BadRequestError(f"the body is badly framed: {error}", reason="framing") from error
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def answer(body: bytes) -> web.StreamResponse:
    """Return a 200 with JSON; all but the largest go out in one write."""
    return _Answer(body) if len(body) <= _SLICE else _LargeAnswer(body)


def refusal(status: int, **headers: str) -> web.Response:
    """Return an answer without a body: Go reads no body of an error, and drops the connection."""
    return web.Response(status=status, headers={**headers, "Content-Length": "0"})


class _Answer(web.StreamResponse):
    # Head and body in one piece: what aiohttp does besides takes longer than all else in an answer.
    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._content = body
        self._stays: bool | None = None

    @property
    def keep_alive(self) -> bool | None:
        return self._stays

    def force_close(self) -> None:
        self._stays = False

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        if self._stays is None:
            self._stays = request.keep_alive
        if request.transport is None:
            raise ConnectionResetError("the caller is gone")
        request.transport.write(self._head(request) + self._content)
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: all is written."""

    def _head(self, request: web.BaseRequest) -> bytes:
        connection = b""
        if not self._stays:
            connection = b"Connection: close\r\n"
        elif request.version < HttpVersion11:
            connection = b"Connection: keep-alive\r\n"
        return b"%b%bContent-Length: %d\r\nDate: %b\r\n\r\n" % (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
            connection,
            len(self._content),
            _clock.now(),
        )


class _LargeAnswer(web.StreamResponse):
    # aiohttp and asyncio would each copy tens of megabytes; slices go straight to the socket.
    def __init__(self, body: bytes) -> None:
        super().__init__(headers=_JSON)
        self.content_length = len(body)
        self._slices = memoryview(body)

    async def write_eof(self, data: bytes = b"") -> None:
        for start in range(0, len(self._slices), _SLICE):
            await self.write(self._slices[start : start + _SLICE])
        await super().write_eof(data)


class _Clock:
    # The date of answers, which changes once a second.
    def __init__(self) -> None:
        self._second = 0
        self._text = b""

    def now(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second, self._text = second, formatdate(second, usegmt=True).encode()
        return self._text


_clock = _Clock()
