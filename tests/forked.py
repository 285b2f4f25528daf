"""Modules of ours in forked processes, with pipes to what they write."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.up.processes import Forked, fork

PATIENCE = 20.0
"""Seconds until a process must have written a line, or ended."""


@dataclass(frozen=True)
class Running:
    """A process, and what it writes."""

    process: Forked
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader | None

    async def event(self) -> dict[str, Any]:
        """Read the next line of its stdout."""
        async with asyncio.timeout(PATIENCE):
            event: dict[str, Any] = json.loads(await self.stdout.readline())
        return event

    async def ended(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and the rest of its stderr."""
        async with asyncio.timeout(PATIENCE):
            errors = await self.stderr.read() if self.stderr else b""
            await self.stdout.read()
            return await self.process.wait(), errors.decode()


@asynccontextmanager
async def forked(
    module: str,
    *options: str,
    errors: int | None = None,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Running]:
    """Run a module with command-line options; kill it in the end.

    Args:
        module: The module.
        *options: Its command line.
        errors: The descriptor that gets its stderr; a pipe if left out.
        directory: Its current directory.
        environment: What is added to this process's environment.
    """
    async with AsyncExitStack() as stack:
        with ExitStack() as ends:
            stdout, out = await _pipe(stack, ends)
            stderr, err = (None, errors) if errors is not None else await _pipe(stack, ends)
            process = await fork(
                *(module, options),
                stdout=out,
                stderr=err,
                directory=directory,
                environment=environment,
            )
        stack.push_async_callback(process.wait)
        stack.callback(process.kill)
        yield Running(process, stdout, stderr)


async def _pipe(stack: AsyncExitStack, ends: ExitStack) -> tuple[asyncio.StreamReader, int]:
    """Open a pipe until *stack* is left; return what reads, and the other end, until *ends* is."""
    read, write = os.pipe()
    ends.callback(os.close, write)
    reader = asyncio.StreamReader(limit=1 << 20)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb")
    )
    stack.callback(transport.close)
    return reader, write
