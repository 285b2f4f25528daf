"""One process: started, waited for, replaced by a successor, stopped."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cli.up.processes.forking import Forked, ProcessFailedError, fork

START_SECONDS = 60.0
"""Time until a process must report that it serves; imports take seconds on a busy machine."""

STOP_SECONDS = 10.0
"""Time that a process has to end after SIGTERM before it is killed."""

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
        self._process, stdout = await self._launch()
        self.served = await self._announcement(self._process, stdout)

    async def start_successor(self) -> None:
        """Start it once more beside the running one, and wait until it serves too.

        Raises:
            ProcessFailedError: As `start`; the running one goes on.
        """
        self._successor, stdout = await self._launch()
        await self._announcement(self._successor, stdout)

    async def hand_over(self) -> None:
        """Let the successor go on alone."""
        former, self._process, self._successor = self._process, self._successor, None
        await _stop(former)

    async def stop_successor(self) -> None:
        """Stop the successor, if there is one; the running one goes on."""
        successor, self._successor = self._successor, None
        await _stop(successor)

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

    async def _launch(self) -> tuple[Forked, asyncio.StreamReader]:
        """Start it; return it with its stdout."""
        stdout, pipe = asyncio.StreamReader(), os.pipe()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stdout), os.fdopen(pipe[0], "rb")
        )
        with self.log.open("ab") as log, os.fdopen(pipe[1], "wb") as end:
            process = await fork(
                self.module,
                self.options,
                stdout=end.fileno(),
                stderr=log.fileno(),
                name=self.name,
                niceness=self.niceness,
            )
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
            return f"{self.name} was killed by {signal.Signals(-code).name}"
        words = self._last_words()
        if mistake := MISTAKE.fullmatch(words):
            return f"{mistake[1]} ({self.name})"
        return f"{self.name} ended with exit code {code}: {words}"

    def _last_words(self) -> str:
        # Tracebacks of groups end in a line of dashes.
        lines = self.log.read_text(errors="replace").splitlines()
        words = [line.strip() for line in lines if any(map(str.isalpha, line))]
        return words[-1] if words else "it wrote nothing"


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
