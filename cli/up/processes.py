"""Starts, watches and stops the processes of `moorage up`."""

import asyncio
import json
import os
import random
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from moorage.errors import ConfigurationError

START_SECONDS = 60.0
"""Time until a process must report that it serves; imports take seconds on a busy machine."""

STOP_SECONDS = 10.0
"""Time that a process has to end after SIGTERM before it is killed."""

RESTART_PAUSE = 0.2
"""Seconds between the end of a process and its next start; doubles with each death in a row."""

STEADY_SECONDS = 20.0
"""A process that ran for longer than this has not died in a row with the last time."""

DEATHS = 5
"""Deaths in a row after which a process is given up."""


PORTS = range(20_000, 32_000)
"""Where ports are taken from that the user did not choose."""


class ProcessFailedError(ConfigurationError):
    """A process of ours ended, or never got ready; the message holds its last words."""


@dataclass(slots=True, kw_only=True)
class Process:
    """One of our processes.

    Attributes:
        name: What people call it.
        module: The Python module that it runs.
        options: Its command line.
        log: Where its stderr goes.
        replaceable: It can be started again without losing anything.
        niceness: How far it stands back for other processes, as in nice(1); 0 is not at all.
        served: What it reported when it was ready.
    """

    name: str
    module: str
    options: Sequence[str]
    log: Path
    replaceable: bool = True
    niceness: int = 0
    served: Mapping[str, str] = field(default_factory=dict)
    _process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started.pid

    async def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            ProcessFailedError: It ended, or is not ready in time.
        """
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # modules in the current directory must not shadow ours
                "-m",
                "moorage_apps",
                self.module,
                *self.options,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C is for us alone: we stop the others in order
            )
        if self.niceness:
            with suppress(ProcessLookupError):  # it has ended already, as is noticed below
                os.setpriority(os.PRIO_PROCESS, self.pid, self.niceness)
        try:
            async with asyncio.timeout(START_SECONDS):
                self.served = await self._announcement()
        except TimeoutError as error:
            await self.stop()
            raise ProcessFailedError(
                f"{self.name} is not ready after {START_SECONDS:g} s; its log is {self.log}"
            ) from error

    async def wait(self) -> str:
        """Wait until it ends; return how."""
        code = await self._started.wait()
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

    @property
    def _started(self) -> asyncio.subprocess.Process:
        assert self._process is not None  # noqa: S101 - started first
        return self._process

    async def _announcement(self) -> Mapping[str, str]:
        assert self._started.stdout is not None  # noqa: S101 - a pipe
        async for line in self._started.stdout:
            if line.startswith(b"{"):
                announcement: Mapping[str, str] = json.loads(line)
                return announcement
        raise ProcessFailedError(await self.wait())

    def _last_words(self) -> str:
        # Tracebacks of groups end in a line of dashes.
        lines = self.log.read_text(errors="replace").splitlines()
        words = [line.strip() for line in lines if any(map(str.isalpha, line))]
        return words[-1] if words else "it wrote nothing"


class Processes:
    """Runs several processes, restarts those that die, and stops them all in the end."""

    def __init__(self, report: Callable[[str], None]) -> None:
        """Report restarts and ends of processes with *report*."""
        self._report = report
        self._groups: list[Sequence[Process]] = []

    async def start(self, *groups: Sequence[Process]) -> None:
        """Start all processes at once and wait until all of them serve.

        Args:
            groups: What depends on whom: the last group is stopped first.

        Raises:
            ProcessFailedError: In an ExceptionGroup: one does not.
        """
        self._groups.extend(groups)
        async with asyncio.TaskGroup() as tasks:
            for process in chain(*groups):
                tasks.create_task(process.start())

    def named(self, name: str) -> Process:
        """Return the process called *name*."""
        return next(process for process in self._all() if process.name == name)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Start processes again that die, for as long as the block lasts.

        Raises:
            ProcessFailedError: In an ExceptionGroup: one died that cannot be replaced, or again
                and again.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._keep(process)) for process in self._all()]
            yield
            for task in tasks:
                task.cancel()

    async def stop(self) -> None:
        """Stop all processes, the last group first."""
        for processes in reversed(self._groups):
            async with asyncio.TaskGroup() as group:
                for process in processes:
                    group.create_task(process.stop())

    def _all(self) -> list[Process]:
        return list(chain(*self._groups))

    async def _keep(self, process: Process) -> None:
        clock, deaths = asyncio.get_running_loop().time, 0
        while True:
            began = clock()
            end = await (process.wait() if deaths == 0 else _run_again(process))
            if not process.replaceable:
                raise ProcessFailedError(f"{end}; the embedded cluster is lost")
            deaths = 1 if clock() - began > STEADY_SECONDS else deaths + 1
            if deaths > DEATHS:
                raise ProcessFailedError(f"{end}; it died {deaths} times in a row")
            pause = RESTART_PAUSE * 2 ** (deaths - 1)
            self._report(f"{end}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)


async def _run_again(process: Process) -> str:
    try:
        await process.start()
    except ProcessFailedError as error:
        return str(error)
    return await process.wait()


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now.

    They lie below the range from which Linux takes the ports of outgoing connections, so that none
    of these gets in the way before the port is used.
    """
    with ExitStack() as stack:
        found: list[int] = []
        for port in random.sample(PORTS, len(PORTS)):
            if len(found) == count:
                return found
            try:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            found.append(port)
    raise ConfigurationError(f"fewer than {count} of the ports {PORTS[0]} to {PORTS[-1]} are free")
