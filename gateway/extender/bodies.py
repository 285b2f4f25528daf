"""Takes bodies off the wire and puts answers on it."""

from aiohttp import web

from gateway.wire.errors import BadRequestError

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


def answer(body: bytes) -> web.Response:
    """Return a 200 with JSON."""
    return web.Response(body=body, headers=_JSON)


def refusal(status: int, **headers: str) -> web.Response:
    """Return an answer without a body: Go reads no body of an error, and drops the connection."""
    return web.Response(status=status, headers={**headers, "Content-Length": "0"})
