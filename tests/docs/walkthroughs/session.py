"""Runs a page as a reader does: a shell, a program in the first terminal, files."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from cli.up.processes import free_ports
from tests.cli.support import processes_in
from tests.docs.walkthroughs.page import Step, pattern
from tools.waiting import until

PATIENCE = 250.0
AGAIN = ("kubectl get ", "moorage explain ")
"""Commands that look at what may not be there yet."""


class Session:
    """A reader's folder, with a shell in the second terminal and a program in the first."""

    def __init__(self, folder: Path, shell: asyncio.subprocess.Process) -> None:
        self._folder = folder
        self._shell = shell
        self._printed = ""
        self._programs: list[int] = []
        self._started = 0
        self._log = folder / "program-1.log"
        self._seen = 0
        self._ports = dict(zip(("9090", "8888"), map(str, free_ports(2)), strict=True))

    async def run(self, steps: Iterable[Step]) -> None:
        """Take all steps; fail at the first that does not show what the page shows."""
        todo = [*steps]
        for step, following in zip(todo, [*todo[1:], None], strict=True):
            expected = following.text if following and following.kind == "output" else ""
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._take(step, self._own(expected))
            except (TimeoutError, AssertionError) as error:
                problem = str(error) or f"in vain:\n{step.text}\n{self._printed}"
                raise AssertionError(
                    f"{step}: {problem}\nfirst terminal:\n{self._screen()}"
                ) from error

    async def _take(self, step: Step, expected: str) -> None:
        text = self._own(step.text)
        match step.kind:
            case "file":
                (await self._cwd() / step.file).write_text(text)
            case "program":
                await self._start(text)
            case "stop":
                await self._stop()
            case "screen":
                await self._wait_for(text)
            case "command":
                await self._command(text, expected)

    async def _command(self, text: str, expected: str) -> None:
        """Run a command; it must print what is expected, sooner or later if it only looks."""
        wanted = pattern(expected)
        while True:
            printed = await self._enter(text)
            shown = "\n".join(filter(None, map(str.strip, printed.splitlines())))
            if wanted.fullmatch(shown):
                return
            if not text.startswith(AGAIN):
                raise AssertionError(f"{text}\nprints\n{shown}\ninstead of\n{expected}")
            self._printed = shown  # for the message
            await asyncio.sleep(0.1)

    async def _start(self, text: str) -> None:
        """Start a program that stays; what it writes can be awaited until the next one starts."""
        self._started += 1
        log = self._folder / f"program-{self._started}.log"  # the shell makes it after it answers
        pid = await self._enter(f"{text.strip()} > {log} 2>&1 & echo $!")
        self._programs.append(int(pid))
        if text.startswith("moorage "):
            self._log, self._seen = log, 0

    async def _stop(self) -> None:
        """Press Ctrl-C in the first terminal."""
        pid = self._programs.pop()
        os.kill(pid, signal.SIGINT)
        assert await self._enter(f"wait {pid}; echo $?") == "0\n"

    async def _wait_for(self, text: str) -> None:
        wanted = pattern(text)
        await until(lambda: wanted.search(self._screen()))
        found = wanted.search(self._screen())
        assert found is not None
        self._seen += found.end()

    def _screen(self) -> str:
        """Return what the first terminal shows that has not been looked at."""
        return self._log.read_text()[self._seen :] if self._log.exists() else ""

    async def _cwd(self) -> Path:
        return Path((await self._enter("pwd")).strip())

    async def _enter(self, text: str) -> str:
        """Enter commands in the second terminal; return what they print."""
        assert self._shell.stdin
        assert self._shell.stdout
        self._shell.stdin.write(f"{{ {text.strip()}\n}} </dev/null\necho; echo END\n".encode())
        printed = await self._shell.stdout.readuntil(b"\nEND\n")
        return printed.decode().removesuffix("\nEND\n")

    def _own(self, text: str) -> str:
        """Return the text with ports that are free here."""
        return re.sub(r"\b(9090|8888)\b", lambda match: self._ports[match[1]], text)


@asynccontextmanager
async def session(home: Path, programs: Path, **environment: str) -> AsyncIterator[Session]:
    """Open the second terminal, in a folder; end all that was started in it.

    Args:
        home: The folder.
        programs: A folder that comes first in PATH.
        environment: Further variables.
    """
    temporary = home / "tmp"
    temporary.mkdir()
    defaults = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "TMPDIR": str(temporary),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the reader has none
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    shell = await asyncio.create_subprocess_exec(
        "sh",
        cwd=home,
        env={**os.environ, **defaults, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield Session(home, shell)
    finally:
        for pid in processes_in(home):
            with suppress(ProcessLookupError):  # it ended together with another one
                os.kill(pid, signal.SIGKILL)
        await shell.communicate()
