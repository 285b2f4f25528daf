import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage_host.rpc.serve import ServerSettings

ROOT = Path(__file__).parents[3]
FREE: dict[str, Any] = {"host": "127.0.0.1", "admin_host": "127.0.0.1", "port": 0, "admin_port": 0}


def settings(**changes: Any) -> ServerSettings:
    return ServerSettings(**{**FREE, "shutdown_delay": 0.0, **changes})


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Poll until the condition holds."""
    async with asyncio.timeout(20):
        while not await condition():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(0.01)


@dataclass(frozen=True)
class Tiny:
    """The tiny service in a process of its own."""

    process: asyncio.subprocess.Process

    async def event(self) -> dict[str, str]:
        """Read the next line of its stdout."""
        assert self.process.stdout
        async with asyncio.timeout(20):
            event: dict[str, str] = json.loads(await self.process.stdout.readline())
        return event

    async def ended(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and the rest of its stderr."""
        async with asyncio.timeout(20):
            _, errors = await self.process.communicate()
        return self.process.returncode or 0, (errors or b"").decode()


async def run(*command: str, errors: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
    path = os.pathsep.join((str(ROOT), str(ROOT / "sdk")))
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
    )


def tiny_command(*options: str) -> list[str]:
    free = [f"--{name.replace('_', '-')}={value}" for name, value in FREE.items()]
    return [sys.executable, "-m", "tests.host.rpc.tiny", *free, *options]


async def run_tiny(*options: str, errors: int = asyncio.subprocess.PIPE) -> Tiny:
    return Tiny(await run(*tiny_command(*options), errors=errors))
