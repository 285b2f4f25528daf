"""Takes bodies off the wire and puts answers on it."""

from aiohttp import web

from gateway.wire.errors import BadRequestError

_SLICE = 1 << 20  # bytes
_JSON = {"Content-Type": "application/json"}


class BodyTooLargeError(BadRequestError):
    """A body exceeds its limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body has more than {limit} bytes", reason="too_large")


async def read_body(request: web.Request, limit: int) -> bytes:
    """Return the body; raises BadRequestError when it is too large (in bytes) or badly framed."""
    if (request.content_length or 0) > limit:
        raise BodyTooLargeError(limit)
    chunks, size = [], 0
    try:
        async for chunk in request.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                raise BodyTooLargeError(limit)
    except web.RequestPayloadError as error:
        raise BadRequestError(f"the body is badly framed: {error}", reason="framing") from error
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def answer(body: bytes) -> web.StreamResponse:
    """Return a 200 with JSON; all but the largest go out in one write."""
    if len(body) > _SLICE:
        return _LargeAnswer(body)
    return web.Response(body=body, headers=_JSON)


def refusal(status: int, **headers: str) -> web.Response:
    """Return an answer without a body: Go reads no body of an error, and drops the connection."""
    return web.Response(status=status, headers={**headers, "Content-Length": "0"})


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
