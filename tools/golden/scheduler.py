"""Runs a kube-scheduler for oracle.py, and follows what it writes."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tools.golden.profiles import configuration
from tools.planes.embedded import Plane

PATIENCE = 20.0
VERBOSITY = ("--v=3", "--vmodule=schedule_one=10")  # without the bodies of all requests
GATES = "--feature-gates=OpportunisticBatching=false"  # it would reuse scores of similar pods


@asynccontextmanager
async def scheduler(plane: Plane) -> AsyncIterator["Log"]:
    """Run a new kube-scheduler: it knows all that exists before it schedules."""
    program = plane.scheduler("golden", configuration())
    command = (part for part in program.command if not part.startswith("--v="))
    program.command = [*command, *VERBOSITY, GATES]
    program.log.write_bytes(b"")
    try:
        await program.start()
        yield Log(program.log)
    finally:
        await program.stop()


class Log:
    """What a program writes.

    Attributes:
        lines: What was read since `forget`.
    """

    def __init__(self, path: Path) -> None:
        self.lines: list[str] = []
        self._path = path
        self._read = 0
        self._rest = ""

    async def line(self, pattern: str) -> str:
        """Return the first line that matches; wait for one if none was read yet."""
        wanted, checked = re.compile(pattern), 0
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    for line in self.lines[checked:]:
                        if wanted.search(line):
                            return line
                    checked = len(self.lines)
                    if not self._more():
                        await asyncio.sleep(0.002)
        except TimeoutError as error:
            raise RuntimeError(f"no {pattern} in:\n" + "\n".join(self.lines[-60:])) from error

    def forget(self) -> None:
        """Forget all lines that were read."""
        self.lines.clear()

    def _more(self) -> bool:
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        self._read += len(new)
        *lines, self._rest = (self._rest + new.decode(errors="replace")).split("\n")
        self.lines += lines
        return bool(lines)
