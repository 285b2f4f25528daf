"""Starts, watches and stops the processes of `moorage up`."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from moorage.errors import ConfigurationError

START_SECONDS = 60.0
"""Time that a process has to say that it serves; imports take seconds on a busy machine."""

STOP_SECONDS = 10.0
"""Time that a process has to end after SIGTERM before it is killed."""

RESTART_PAUSE = 0.2
"""Seconds between the end of a process that served and its next start."""


class ProcessFailedError(ConfigurationError):
    """A process of ours ended, or never got ready; the message holds its last words."""


@dataclass(slots=True, kw_only=True)
class Process:
    """One of our processes.

    Attributes:
        name: What people call it.
        module: The Python module that it runs.
        options: Its command line.
        served: What it said when it was ready.
    """

    name: str
    module: str
    options: Sequence[str]
    log: Path
    served: Mapping[str, str] = field(default_factory=dict)
    _process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None  # noqa: S101 - started first
        return self._process.pid

    async def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            ProcessFailedError: It ended, or is not ready in time.
        """
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                self.module,
                *self.options,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        try:
            async with asyncio.timeout(START_SECONDS):
                self.served = await self._announcement()
        except TimeoutError as error:
            raise ProcessFailedError(
                f"{self.name} is not ready after {START_SECONDS:g} s; its log is {self.log}"
            ) from error

    async def wait(self) -> str:
        """Wait until it ends; say how."""
        assert self._process is not None  # noqa: S101 - started first
        code = await self._process.wait()
        if code < 0:
            return f"{self.name} was killed by {signal.Signals(-code).name}"
        return f"{self.name} ended with exit code {code}: {self._last_words()}"

    async def stop(self) -> None:
        """Ask it to end, and kill it if it does not."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _announcement(self) -> Mapping[str, str]:
        assert self._process is not None  # noqa: S101 - just started
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        async for line in self._process.stdout:
            if line.startswith(b"{"):
                announcement: Mapping[str, str] = json.loads(line)
                return announcement
        raise ProcessFailedError(await self.wait())

    def _last_words(self) -> str:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line]
        return lines[-1] if lines else "it said nothing"


class Processes:
    """Runs several processes, restarts those that die, and stops them all in the end."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """Tell people what happens with *say*."""
        self._say = say
        self._running: list[Process] = []
        self._stopping = False

    async def start(self, *processes: Process) -> None:
        """Start processes side by side and wait until all of them serve.

        Raises:
            ProcessFailedError: One does not.
        """
        self._running.extend(processes)
        async with asyncio.TaskGroup() as group:
            for process in processes:
                group.create_task(process.start())

    def named(self, name: str) -> Process:
        """Return the process called *name*."""
        return next(process for process in self._running if process.name == name)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Start processes again that die, for as long as the block lasts."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._keep(process)) for process in self._running]
            yield
            for task in tasks:
                task.cancel()

    async def stop(self) -> None:
        """Stop all processes, those that were started last first."""
        self._stopping = True
        for process in reversed(self._running):
            await process.stop()

    async def _keep(self, process: Process) -> None:
        while True:
            end = await process.wait()
            if self._stopping:
                return
            self._say(f"{end}; starting it again")
            await asyncio.sleep(RESTART_PAUSE)
            await process.start()


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now; asked for together, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports
