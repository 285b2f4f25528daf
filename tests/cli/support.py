"""The `moorage` command in a process of its own, and what it leaves behind."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MOORAGE = Path(sys.executable).parent / "moorage"
PATIENCE = 50.0

Object = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Command:
    """A running command, or one that ended.

    Attributes:
        home: Where its temporary files go; marks its processes.
        lines: What it wrote on stdout so far.
    """

    home: Path
    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)

    async def line(self, start: str) -> str:
        """Read on until a line begins with *start*; return it."""
        assert self.process.stdout
        async with asyncio.timeout(PATIENCE):
            async for raw in self.process.stdout:
                self.lines.append(raw.decode().rstrip("\n"))
                if self.lines[-1].startswith(start):
                    return self.lines[-1]
        raise AssertionError(f"no line begins with {start!r}: {self.lines}")

    async def ended(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and what it wrote on stderr."""
        async with asyncio.timeout(PATIENCE):
            out, errors = await self.process.communicate()
        self.lines += out.decode().splitlines()
        return self.process.returncode or 0, errors.decode()

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
        table = self.lines[self._header() + 1 :]
        found = (re.fullmatch(r"(\S+/\S+)  +(\S+)  +(.+)", line) for line in table)
        return {row[1]: (row[2], row[3]) for row in found if row}

    def processes(self, *names: str) -> list[int]:
        """Return the ids of its processes: of all that inherited its temporary folder.

        Args:
            *names: What they are called; any name without these.
        """
        found = (path for path in Path("/proc").glob("[0-9]*") if self._is_ours(path))
        return [int(path.name) for path in found if not names or _name(path) in names]

    def _header(self) -> int:
        return next(i for i, line in enumerate(self.lines) if re.match("POD +NODE +WHY", line))

    def _is_ours(self, path: Path) -> bool:
        try:
            return f"TMPDIR={self.home}".encode() in (path / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended, or is another user's
            return False


def _name(path: Path) -> str:
    try:
        return (path / "comm").read_text().strip()
    except OSError:  # it ended
        return ""


@asynccontextmanager
async def moorage(
    home: Path, *arguments: object, program: Sequence[str] = (str(MOORAGE),)
) -> AsyncIterator[Command]:
    """Run `moorage ARGUMENTS` in the folder *home*; kill what is left of it in the end."""
    temporary = home / "tmp"
    temporary.mkdir()
    process = await asyncio.create_subprocess_exec(
        *program,
        *map(str, arguments),
        cwd=home,
        env={**os.environ, "TMPDIR": str(temporary), "XDG_RUNTIME_DIR": str(home / "runtime")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 20,
        start_new_session=True,
    )
    command = Command(home=temporary, process=process)
    try:
        yield command
    finally:
        for pid in command.processes():
            os.kill(pid, signal.SIGKILL)
        await process.communicate()


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - another process's state
            await asyncio.sleep(0.02)


def node(name: str, **metadata: Any) -> Object:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


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
