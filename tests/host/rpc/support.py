import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from cli.up.processes import Forked, fork
from moorage_host.rpc.serve import ServerSettings

ROOT = Path(__file__).parents[3]
FREE: dict[str, Any] = {"host": "127.0.0.1", "admin_host": "127.0.0.1", "port": 0, "admin_port": 0}


def settings(**changes: Any) -> ServerSettings:
    return ServerSettings(**{**FREE, "shutdown_delay": 0.0, **changes})


@dataclass(frozen=True)
class Tiny:
    """The tiny service in a process of its own."""

    process: Forked | asyncio.subprocess.Process
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader | None

    async def event(self) -> dict[str, str]:
        """Read the next line of its stdout."""
        async with asyncio.timeout(20):
            event: dict[str, str] = json.loads(await self.stdout.readline())
        return event

    async def ended(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and the rest of its stderr."""
        async with asyncio.timeout(20):
            errors = await self.stderr.read() if self.stderr else b""
            await self.stdout.read()
            return await self.process.wait(), errors.decode()


async def run(*command: str) -> asyncio.subprocess.Process:
    path = os.pathsep.join((str(ROOT), str(ROOT / "sdk")))
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def tiny_options(*options: str) -> list[str]:
    return [*(f"--{name.replace('_', '-')}={value}" for name, value in FREE.items()), *options]


@asynccontextmanager
async def run_tiny(*options: str, errors: int | None = None) -> AsyncIterator[Tiny]:
    """Run the tiny service; kill it in the end. It is forked, its stderr may go to a descriptor."""
    async with AsyncExitStack() as stack:
        (stdout, out), (stderr, err) = await _pipe(stack), await _pipe(stack)
        process = await fork(
            "tests.host.rpc.tiny",
            tiny_options(*options),
            stdout=out.fileno(),
            stderr=err.fileno() if errors is None else errors,
        )
        out.close()
        err.close()
        stack.push_async_callback(process.wait)
        stack.callback(process.kill)
        yield Tiny(process, stdout, stderr if errors is None else None)


async def _pipe(stack: AsyncExitStack) -> tuple[asyncio.StreamReader, BinaryIO]:
    """Open a pipe; return what reads, and the end to give away and to close."""
    read, write = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb")
    )
    stack.callback(transport.close)
    return reader, os.fdopen(write, "wb")
