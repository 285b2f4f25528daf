"""One direction-aware TCP proxy: from one process to another, with faults that can be set."""

import asyncio
import itertools
import math
import random
import socket
import struct
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

Direction = Literal["up", "down"]
"""From the client to the server, and back."""

CHUNK = 65_536
WAITING_CHUNKS = 256
"""What is read ahead of a connection while it is held."""


class Link:
    """Listens on a port of its own and passes connections on.

    Attributes:
        name: Such as "gateway>binder".
        port: Where clients connect.
        targets: Ports of the server; new connections go to the first that takes them.
        delay: Seconds by which chunks are late on average, in both directions; it varies from
            chunk to chunk, so that calls on two connections overtake each other.
        bandwidth: Bytes a second that a connection passes on in each direction.
    """

    def __init__(self, name: str, targets: Sequence[int], *, in_turn: bool = False) -> None:
        """Lead to the first of *targets* that takes a connection, or *in_turn* to each.

        Then those with fewer open connections come first.
        """
        self.name = name
        self.targets = list(targets)
        self.port = 0
        self.delay, self.bandwidth = 0.0, math.inf
        self._open: dict[Direction, asyncio.Event] = {
            "up": asyncio.Event(),
            "down": asyncio.Event(),
        }
        self._connections: set[_Connection] = set()
        self._turns = itertools.count() if in_turn else None
        self._server: asyncio.Server | None = None
        self.heal()

    @property
    def serving(self) -> set[int]:
        """The ports of the servers to which connections are open."""
        return {each.port for each in self._connections}

    async def start(self, port: int = 0) -> None:
        """Listen; port 0 takes a free one."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Cut everything."""
        if self._server:
            self._server.close()
        self.cut()

    def heal(self) -> None:
        """Pass everything on again, and what was held first, as TCP does after a partition."""
        self.delay, self.bandwidth = 0.0, math.inf
        for event in self._open.values():
            event.set()
        for connection in self._connections:
            connection.thawed.set()

    def hold(self, *directions: Direction) -> None:
        """Pass nothing on in these directions until `heal`: connections stay open."""
        for direction in directions:
            self._open[direction].clear()

    def freeze(self) -> None:
        """Pass nothing more on of the connections that are open now, until `heal`."""
        for connection in self._connections:
            connection.thawed.clear()

    def cut(self) -> None:
        """Reset all connections; new ones are taken."""
        for connection in list(self._connections):
            connection.abort()

    def half_open(self) -> None:
        """Reset the server's end of all connections; clients never hear of it."""
        for connection in list(self._connections):
            connection.lose_server()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for port in self._order():
            with suppress(OSError):
                upstream = await asyncio.open_connection("127.0.0.1", port)
                break
        else:
            _reset(writer)
            return
        connection = _Connection(self, (reader, writer), upstream, port)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    def _order(self) -> Sequence[int]:
        """Return the ports of the server, the one first that is to take the next connection."""
        if self._turns is None:
            return self.targets
        first = next(self._turns) % len(self.targets)
        opened = Counter(each.port for each in self._connections)
        return sorted((*self.targets[first:], *self.targets[:first]), key=opened.__getitem__)

    async def passable(self, direction: Direction, due: float) -> None:
        """Wait until bytes may be passed on."""
        late = due - asyncio.get_running_loop().time()
        if late > 0:
            await asyncio.sleep(late)
        await self._open[direction].wait()


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Connection:
    """One client's connection and the one to the server."""

    def __init__(self, link: Link, client: Streams, server: Streams, port: int) -> None:
        self.port = port  # the server's
        self._link = link
        self._client = client
        self._server = server
        self._lost = asyncio.Event()
        self.thawed = asyncio.Event()
        self.thawed.set()

    async def run(self) -> None:
        """Pass bytes on until both ends have closed."""
        (client_reader, client_writer), (server_reader, server_writer) = self._client, self._server
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump("up", client_reader, server_writer))
                group.create_task(self._pump("down", server_reader, client_writer))
        except* OSError:
            if self._lost.is_set():
                await self._swallow()
        finally:
            self.abort()

    def abort(self) -> None:
        """Reset both ends."""
        for _, writer in (self._client, self._server):
            _reset(writer)

    def lose_server(self) -> None:
        """Reset the server's end; the client's stays open and silent."""
        self._lost.set()
        _reset(self._server[1])

    async def _pump(
        self, direction: Direction, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        clock = asyncio.get_running_loop().time
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING_CHUNKS)

        async def read() -> None:
            data, due = b"-", 0.0
            while data:
                data = await reader.read(CHUNK)
                due = max(due, clock() + random.uniform(0, 2 * self._link.delay))
                due += len(data) / self._link.bandwidth
                await chunks.put((due, data))

        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            while True:
                due, data = await chunks.get()
                await self._link.passable(direction, due)
                await self.thawed.wait()
                if self._lost.is_set():
                    raise ConnectionResetError
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        with suppress(OSError, RuntimeError):
            writer.write_eof()

    async def _swallow(self) -> None:
        """Read what a client sends to a server that is gone."""
        with suppress(OSError):
            while await self._client[0].read(CHUNK):
                pass


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection in a way that the other end sees as a failure."""
    with suppress(OSError):  # it is closed already
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
