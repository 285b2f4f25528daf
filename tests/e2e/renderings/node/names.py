"""The cluster's DNS: A records of Services, as CoreDNS answers for them."""

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence

ZONE = "cluster.local"
A, AAAA, IN = 1, 28, 1
NO_ERROR, NO_SUCH_NAME = 0, 3
TTL = 5
HEADER = struct.Struct("!6H")
QUESTION = struct.Struct("!HH")

Records = Callable[[str], Sequence[str] | None]
"""The addresses of a name, None if there is no such name."""


class Names(asyncio.DatagramProtocol):
    """Answers over UDP."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._transport: asyncio.DatagramTransport | None = None

    async def start(self, bound: socket.socket) -> None:
        """Answer what comes to a socket until `stop`."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=bound)

    def stop(self) -> None:
        """Listen no more."""
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer a question."""
        assert self._transport is not None
        self._transport.sendto(answer(data, self._records), addr)


def answer(request: bytes, records: Records) -> bytes:
    """Return the response to a request with one question."""
    number, _, _, _, _, _ = HEADER.unpack_from(request)
    labels, at = [], HEADER.size
    while length := request[at]:
        labels.append(request[at + 1 : at + 1 + length].decode().lower())
        at += 1 + length
    kind, _ = QUESTION.unpack_from(request, at + 1)
    question = request[HEADER.size : at + 1 + QUESTION.size]
    found = records(".".join(labels))
    addresses = found if found and kind == A else ()
    code = NO_SUCH_NAME if found is None else NO_ERROR
    # A response, authoritative, recursion available.
    header = HEADER.pack(number, 0x8580 | code, 1, len(addresses), 0, 0)
    pointer = struct.pack("!HHHIH", 0xC000 | HEADER.size, A, IN, TTL, 4)
    return header + question + b"".join(pointer + socket.inet_aton(each) for each in addresses)
