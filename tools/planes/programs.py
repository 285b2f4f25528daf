"""Programs that a test starts, kills, holds and stops; whatever language they are written in.

Those of Moorage are forked, by one fork server for each test process, as `moorage up` does it.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cli.up.processes import Forked, fork

START_SECONDS = 60.0
STOP_SECONDS = 10.0
TOLD_LINES = 15

# Not forked; the kernel kills the program when the test process dies, however it dies.
LAUNCH = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


class ProgramError(Exception):
    """A program ended, or does not get ready; the message holds the end of its log."""


@dataclass(slots=True, kw_only=True)
class Program:
    """One program. Its output goes to `log`; `ready` says whether it can be used.

    Attributes:
        module: A module of ours that it runs, with `command` as the options; empty for a program
            that is not ours.
        environment: Variables for its start, such as PYTHONPATH; so it is not forked.
    """

    name: str
    command: Sequence[str]
    log: Path
    ready: Callable[[], Awaitable[bool]]
    module: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    _process: asyncio.subprocess.Process | Forked | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        with self.log.open("ab") as log:
            self._process = await self._launch(log.fileno())
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await self.ready():
                    if not self.running:
                        raise ProgramError(f"{self.name} ended:\n{self.last_words()}")
                    await asyncio.sleep(0.05)
        except TimeoutError as error:
            await self.kill()
            raise ProgramError(f"{self.name} is not ready:\n{self.last_words()}") from error

    async def stop(self) -> None:
        """Ask it to end, and kill it if it does not."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """End it at once."""
        await self._end(signal.SIGKILL)

    def hold(self) -> None:
        """Let it do nothing until `go_on`; its sockets stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def last_words(self) -> str:
        if not self.log.is_file():  # a device or a pipe
            return ""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(line[:500] for line in lines[-TOLD_LINES:])

    async def _launch(self, log: int) -> asyncio.subprocess.Process | Forked:
        if self.module and not self.environment:
            return await fork(self.module, self.command, stdout=log, stderr=log, name=self.name)
        # What lies in the current directory is not ours.
        python = (sys.executable, "-P", "-m", self.module) if self.module else ()
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-ISc", LAUNCH, str(os.getpid()), *python, *self.command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
            start_new_session=True,
        )

    async def _end(self, how: signal.Signals) -> None:
        if self._process is None or not self.running:
            return
        self._process.send_signal(how)
        self._process.send_signal(signal.SIGCONT)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def running(*programs: Program) -> AsyncIterator[None]:
    """Start programs side by side; stop in the end those that run then."""
    try:
        async with asyncio.TaskGroup() as group:
            for program in programs:
                group.create_task(program.start())
        yield
    finally:
        await stop_all(programs)


async def stop_all(programs: Sequence[Program]) -> None:
    async with asyncio.TaskGroup() as group:
        for program in programs:
            group.create_task(program.stop())
