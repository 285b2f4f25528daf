"""Runs processes: starts them, waits for them, replaces those that die or change, stops all.

The ports that they get are those that nobody listens on.
"""

import asyncio
import json
import os
import random
import re
import signal
import socket
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from cli.up.processes.forking import Forked, ProcessFailedError, fork
from moorage.errors import ConfigurationError
from moorage.execution.mark import FORMER_END

START_SECONDS = 60.0
"""Time until a process must report that it serves; imports take seconds on a busy machine."""

STOP_SECONDS = 10.0
"""Time that a process has to end after SIGTERM before it is killed."""

RESTART_PAUSE = 0.2
"""Seconds between the end of a process and its next start; doubles with each that never served."""

DEATHS = 5
"""Starts in a row without having served after which a process is given up."""

PORTS = range(20_000, 32_000)
"""Where ports are taken from that the user did not choose."""

NOTHING: Mapping[str, str] = {}

MISTAKE = re.compile(r"moorage [a-z-]+: ([^:]+\.py:\d+: .*)")
"""Last words of a process about a plugin file."""


@dataclass(slots=True, kw_only=True)
class Process:
    """One of our processes.

    Attributes:
        name: What people call it.
        module: The Python module that it runs.
        options: Its command line.
        log: Where its stderr goes.
        replaceable: It can be started again without losing anything.
        served: What it reported when it was ready.
    """

    name: str
    module: str
    options: Sequence[str]
    log: Path
    replaceable: bool = True
    served: Mapping[str, str] = field(default_factory=dict)
    _process: Forked | None = None
    _successor: Forked | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started.pid

    async def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            ProcessFailedError: It ended, or is not ready in time.
        """
        former = self._process
        end = _cause(former.returncode) if former and former.returncode else ""
        self._process, stdout = await self._launch({FORMER_END: end} if end else {})
        self.served = await self._announcement(self._process, stdout)

    async def start_successor(self) -> None:
        """Start it once more beside the running one, and wait until it serves too.

        Raises:
            ProcessFailedError: As `start`; the running one goes on.
        """
        self._successor, stdout = await self._launch()
        await self._announcement(self._successor, stdout)

    async def settle(self, *, replaced: bool) -> None:
        """Let the successor go on alone if it is *replaced*, else the one that ran before."""
        ended, self._successor = self._successor, None
        if replaced:
            self._process, ended = ended, self._process
        await _stop(ended)

    async def wait(self) -> str:
        """Wait until it ends, without a successor to go on; return how."""
        while True:
            process = self._started
            await process.wait()
            if process is self._process:
                return self._end(process)

    async def stop(self) -> None:
        """Ask it to end, and its successor, and kill them if they do not."""
        await _stop(self._process)
        await _stop(self._successor)

    @property
    def _started(self) -> Forked:
        assert self._process is not None  # noqa: S101 - started first
        return self._process

    async def _launch(
        self, environment: Mapping[str, str] = NOTHING
    ) -> tuple[Forked, asyncio.StreamReader]:
        """Start it, with more in its environment; return it with its stdout."""
        stdout, pipe = asyncio.StreamReader(), os.pipe()
        with self.log.open("ab") as log, os.fdopen(pipe[1], "wb") as end:
            reading, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(stdout), os.fdopen(pipe[0], "rb")
            )
            try:
                process = await fork(
                    self.module,
                    self.options,
                    stdout=end.fileno(),
                    stderr=log.fileno(),
                    name=self.name,
                    environment=environment,
                )
            except BaseException:  # what the server may still fork holds the other end
                reading.close()
                raise
        process.at_end(reading.close)  # what it has forked may hold the other end for longer
        return process, stdout

    async def _announcement(
        self, process: Forked, stdout: asyncio.StreamReader
    ) -> Mapping[str, str]:
        """Return what a process announces when it serves; stop it if it does not in time."""
        try:
            async with asyncio.timeout(START_SECONDS):
                async for line in stdout:
                    if line.startswith(b"{"):
                        announcement: Mapping[str, str] = json.loads(line)
                        return announcement
                await process.wait()
        except TimeoutError as error:
            await _stop(process)
            raise ProcessFailedError(
                f"{self.name} is not ready after {START_SECONDS:g} s; its log is {self.log}"
            ) from error
        raise ProcessFailedError(self._end(process))

    def _end(self, process: Forked) -> str:
        """Return how a process ended; a mistake in a plugin file comes with its place first."""
        code = process.returncode or 0
        if code < 0:
            return f"{self.name} was killed by {_cause(code)}"
        words = self._last_words()
        if mistake := MISTAKE.fullmatch(words):
            return f"{mistake[1]} ({self.name})"
        return f"{self.name} ended with {_cause(code)}: {words}"

    def _last_words(self) -> str:
        # Tracebacks of groups end in a line of dashes.
        lines = self.log.read_text(errors="replace").splitlines()
        words = [line.strip() for line in lines if any(map(str.isalpha, line))]
        return words[-1] if words else "it wrote nothing"


def _cause(code: int) -> str:
    """Return how a process ended, by its exit code."""
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


async def _stop(process: Forked | None) -> None:
    if process is None or process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


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
        await _all_at_once(process.start() for process in chain(*groups))

    @property
    def names(self) -> Sequence[str]:
        """What the processes are called."""
        return [process.name for process in self._all()]

    def named(self, name: str) -> Process:
        """Return the process called *name*."""
        return next(process for process in self._all() if process.name == name)

    @asynccontextmanager
    async def replacing(self, names: Collection[str]) -> AsyncIterator[None]:
        """Start a second process beside each of these; when the block ends the first ones stop.

        Raises:
            ProcessFailedError: In an ExceptionGroup: a second one does not serve; the first ones
                go on.
        """
        chosen = [process for process in self._all() if process.name in names]
        replaced = False
        try:
            await _all_at_once(process.start_successor() for process in chosen)
            yield
            replaced = True
        finally:
            await _all_at_once(process.settle(replaced=replaced) for process in chosen)

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
            await _all_at_once(process.stop() for process in processes)

    def _all(self) -> list[Process]:
        return list(chain(*self._groups))

    async def _keep(self, process: Process) -> None:
        failures = 0
        end, served = await process.wait(), True
        while True:
            if not process.replaceable:
                raise ProcessFailedError(f"{end}; the embedded cluster is lost")
            failures = 0 if served else failures + 1
            if failures > DEATHS:
                raise ProcessFailedError(f"{end}; it was started {failures} times and never served")
            pause = RESTART_PAUSE * 2**failures
            self._report(f"{end}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)
            end, served = await _run_again(process)


async def _all_at_once(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(each)


async def _run_again(process: Process) -> tuple[str, bool]:
    """Start a process, and wait until it ends; return how, and whether it has served."""
    try:
        await process.start()
    except ProcessFailedError as error:
        return str(error), False
    return await process.wait(), True


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
