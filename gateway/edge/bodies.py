"""Takes bodies from aiohttp and gives it answers; for calls that `connection` does not answer."""

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from gateway.edge.json.errors import TOO_LARGE, BadRequestError
from gateway.edge.reply import CLOSE, KEEP_ALIVE, Reply


async def read_body(request: web.BaseRequest, limit: int) -> bytes:
    """Return the body; raises BadRequestError when it is too large (in bytes) or badly framed."""
    if (request.content_length or 0) > limit:
        raise _too_large(limit)
    content = request.content
    chunks, size = [], 0
    try:
        while not content.at_eof():
            chunks.append(await content.readany())
            size += len(chunks[-1])
            if size > limit:
                raise _too_large(limit)
    except web.RequestPayloadError as error:
        raise BadRequestError(f"the body is badly framed: {error}", reason="framing") from error
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> BadRequestError:
    return BadRequestError(f"the body has more than {limit} bytes", reason=TOO_LARGE)


def response(reply: Reply) -> web.StreamResponse:
    """Return a reply in aiohttp's form."""
    if reply.status != web.HTTPOk.status_code:
        return refusal(reply.status)
    return _Answer(reply)


def refusal(status: int, **headers: str) -> web.Response:
    """Return an answer without a body: Go reads no body of an error, and drops the connection."""
    return web.Response(status=status, headers={**headers, "Content-Length": "0"})


class _Answer(web.StreamResponse):
    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self._reply = reply
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
        connection = b"" if self._stays else CLOSE
        if self._stays and request.version < HttpVersion11:
            connection = KEEP_ALIVE
        self._reply.send(request.transport, connection)
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: all is written."""
