"""The `moorage` command in a process of its own, and what it leaves behind."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from click.testing import CliRunner, Result

from cli.main import main
from cli.up.processes import Forked, fork
from tests.forked import forked

ROOT = Path(__file__).parents[2]
MOORAGE = Path(sys.executable).parent / "moorage"
COMMAND = "tests.cli.command"
PATIENCE = 50.0

Object = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Command:
    """A running command, or one that ended.

    Attributes:
        home: Where its temporary files go.
        stderr: The file with what it wrote there.
        lines: What it wrote on stdout so far.
    """

    home: Path
    process: Forked
    stdout: asyncio.StreamReader
    stderr: Path
    lines: list[str] = field(default_factory=list)

    async def line(self, start: str) -> str:
        """Read on until a line begins with *start*; return it."""
        async with asyncio.timeout(PATIENCE):
            async for raw in self.stdout:
                self.lines.append(raw.decode().rstrip("\n"))
                if self.lines[-1].startswith(start):
                    return self.lines[-1]
        raise AssertionError(f"no line begins with {start!r}: {self.lines}")

    async def ended(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and what it wrote on stderr."""
        async with asyncio.timeout(PATIENCE):
            out = await self.stdout.read()
            code = await self.process.wait()
        self.lines += out.decode().splitlines()
        return code, self.stderr.read_text()

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        """Signal it alone, or its process group as Ctrl-C in a terminal does."""
        if group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    @property
    def api(self) -> str:
        """The URL of the embedded API server, as printed."""
        (url,) = (line.split()[2] for line in self.lines if line.startswith("API server "))
        return url

    def rows(self) -> dict[str, tuple[str, str]]:
        """Return node and reason of each pod in the table that it wrote."""
        header = next(i for i, line in enumerate(self.lines) if re.match("POD +NODE +WHY", line))
        table = self.lines[header + 1 :]
        found = (re.fullmatch(r"(\S+/\S+)  +(\S+)  +(.+)", line) for line in table)
        return {row[1]: (row[2], row[3]) for row in found if row}

    def processes(self, *names: str) -> list[int]:
        """Return the ids of its processes, those of these names or all."""
        return processes_in(self.home.parent, *names)


def processes_in(folder: Path, *names: str) -> list[int]:
    """Return the ids of the processes that run in *folder* or below.

    Args:
        folder: The folder that is, or holds, their current directory.
        *names: What they are called; any name without these.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or is another user's
            is_here = (path / "cwd").readlink().is_relative_to(folder)
            if is_here and (not names or (path / "comm").read_text().strip() in names):
                found.append(int(path.name))
    return found


@asynccontextmanager
async def moorage(home: Path, *arguments: object, module: str = COMMAND) -> AsyncIterator[Command]:
    """Run `moorage ARGUMENTS`, or another module of ours, in the folder *home*; kill what is left.

    It is forked, and does not import everything again.
    """
    temporary = home / "tmp"
    temporary.mkdir()
    errors = home.with_name(f"{home.name}.stderr")
    environment = {"TMPDIR": str(temporary), "XDG_RUNTIME_DIR": str(home / "runtime")}
    with errors.open("wb") as err:
        async with forked(
            *(module, *map(str, arguments)),
            errors=err.fileno(),
            directory=home,
            environment=environment,
        ) as running:
            command = Command(
                home=temporary, process=running.process, stdout=running.stdout, stderr=errors
            )
            try:
                yield command
            finally:
                for pid in command.processes():
                    with suppress(ProcessLookupError):  # it ended together with another one
                        os.kill(pid, signal.SIGKILL)


async def ran(*arguments: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run `moorage ARGUMENTS` to its end; return its exit code and all that it wrote."""
    with TemporaryFile() as file:
        process = await fork(
            *(COMMAND, arguments),
            stdout=file.fileno(),
            stderr=file.fileno(),
            environment=environment,
        )
        async with asyncio.timeout(PATIENCE):
            code = await process.wait()
        file.seek(0)
        return code, file.read().decode()


def invoked(*arguments: object) -> Result:
    """Run `moorage ARGUMENTS` in this process."""
    return CliRunner().invoke(main, [*map(str, arguments)])


def pod(name: str, namespace: str = "default", **spec: Any) -> Object:
    container = {"name": "main", "image": "app:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container], **spec},
    }


def dump(*objects: Object) -> Object:
    """Return what `kubectl get nodes,pods -o json` prints."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}
