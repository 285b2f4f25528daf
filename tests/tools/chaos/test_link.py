"""A link passes bytes on, and breaks as it is asked to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tools.chaos.link import Link, Streams

CLIENTS: list[asyncio.StreamWriter] = []


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    yield
    for writer in CLIENTS:
        writer.transport.abort()
    CLIENTS.clear()
    await asyncio.sleep(0)


@asynccontextmanager
async def echoing() -> AsyncIterator[Link]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        CLIENTS.append(writer)
        with suppress(OSError):
            await echo(reader, writer)

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    link = Link("test", [server.sockets[0].getsockname()[1]])
    await link.start()
    try:
        yield link
    finally:
        await link.stop()
        server.close()


async def connect(link: Link) -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    CLIENTS.append(writer)
    return reader, writer


async def ask(streams: Streams, text: bytes, seconds: float = 5.0) -> bytes:
    reader, writer = streams
    writer.write(text)
    async with asyncio.timeout(seconds):
        return await reader.readexactly(len(text))


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_a_partition_holds_bytes_and_healing_delivers_them(direction: str) -> None:
    async with echoing() as link:
        streams = await connect(link)
        assert await ask(streams, b"one") == b"one"
        link.hold("up" if direction == "up" else "down")
        with pytest.raises(TimeoutError):
            await ask(streams, b"two", 0.05)
        link.heal()
        assert await asyncio.wait_for(streams[0].readexactly(3), 5) == b"two"


async def test_a_cut_is_seen_by_the_client_and_new_connections_pass() -> None:
    async with echoing() as link:
        streams = await connect(link)
        await ask(streams, b"one")
        link.cut()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await ask(streams, b"two")
        assert await ask(await connect(link), b"three") == b"three"


async def test_a_half_open_connection_stays_silent_for_ever() -> None:
    async with echoing() as link:
        streams = await connect(link)
        await ask(streams, b"one")
        link.half_open()
        with pytest.raises(TimeoutError):
            await ask(streams, b"two", 0.05)
        assert await ask(await connect(link), b"three") == b"three"


async def test_a_client_that_closes_ends_the_connection_to_the_server() -> None:
    async with echoing() as link:
        reader, writer = await connect(link)
        writer.write(b"last")
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 5) == b"last"


async def test_a_server_that_is_not_there_resets_the_client() -> None:
    async with echoing() as link:
        link.targets = [1]
        reader, _ = await connect(link)
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(reader.readexactly(1), 5)
