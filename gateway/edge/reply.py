"""Answers as they go over the wire; verbs make them, `connection` and `bodies` write them."""

import asyncio
import time
from email.utils import formatdate
from http import HTTPStatus

import msgspec

CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = b"Connection: keep-alive\r\n"

_ONE_PIECE = 1 << 20  # bytes; more would take longer to copy than to write on its own

_TYPE = {True: b"Content-Type: application/json\r\n", False: b""}
_STATUS = {
    status: b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode())
    for status in (200, 400, 413, 503)
}


class Reply(msgspec.Struct, frozen=True):
    """JSON with status 200, or another status without a body.

    Go reads no body of an error, and drops the connection if there is one.
    """

    body: bytes = b""
    status: int = 200

    def send(self, transport: asyncio.WriteTransport, connection: bytes = b"") -> None:
        """Write everything; *connection* is a header line that goes with it."""
        head = self._head(connection)
        if len(self.body) <= _ONE_PIECE:
            transport.write(head + self.body)
        else:
            transport.write(head)
            transport.write(self.body)

    def _head(self, connection: bytes) -> bytes:
        return b"%b%b%bContent-Length: %d\r\nDate: %b\r\n\r\n" % (
            _STATUS[self.status],
            _TYPE[self.status == HTTPStatus.OK],
            connection,
            len(self.body),
            _clock.now(),
        )


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
