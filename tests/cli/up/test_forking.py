"""What the fork server starts is as a process that was started by itself."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.up.processes import Forked, fork, forking
from moorage_apps import HOME
from tests.cli.support import PATIENCE
from tools.waiting import until

TWO = """\
import asyncio
import sys
import time

from cli.up.processes import fork

async def main():
    with open(sys.argv[1], "w") as log:
        pids = [
            (await fork("tests.cli.up.tiny", ["silent"], stdout=fd, stderr=fd)).pid
            for fd in [log.fileno()] * 2
        ]
    print(*pids, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def a_server() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        own = forking._Server()
        patch.setattr(forking, "_server", own)
        yield
        own._stop()


@pytest.fixture(scope="module", autouse=True)
def _own_server() -> Iterator[None]:
    """The server of the other tests is neither killed nor held, and has other processes."""
    with a_server():
        yield


async def facts(directory: Path, end: str) -> tuple[int, Any, str]:
    """Run a process that ends like this; return its exit code, what it saw, and its stderr."""
    files = [directory / name for name in ("stdout", "stderr")]
    with files[0].open("wb") as stdout, files[1].open("wb") as stderr:
        process = await fork(
            *("tests.cli.up.facts", [end, "--more"]),
            stdout=stdout.fileno(),
            stderr=stderr.fileno(),
            name="it",
            environment={"MOORAGE_TEST_FACT": "seen"},
        )
    async with asyncio.timeout(PATIENCE):
        code = await process.wait()
    assert process.returncode == code
    return code, json.loads(files[0].read_text()), files[1].read_text()


async def tiny(directory: Path, deed: str = "silent") -> Forked:
    with (directory / "log").open("ab") as log:
        to = log.fileno()
        return await fork("tests.cli.up.tiny", [deed], stdout=to, stderr=to)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_it_is_a_process_of_its_own_in_this_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise ImportError('not the current directory')\n")
    monkeypatch.chdir(tmp_path)
    code, seen, errors = await facts(tmp_path, "0")
    server = seen.pop("server")
    assert (code, errors) == (0, "")
    assert server not in (os.getpid(), os.getppid())
    assert seen == {
        "arguments": ["0", "--more"],
        "directory": str(tmp_path),
        "first": HOME,
        "stdin": "",
        "session": True,
        "variable": "seen",
        "name": "it",
        "descriptors": [0, 1, 2],
    }


async def test_exit_codes_and_last_words_are_those_of_python(tmp_path: Path) -> None:
    assert (await facts(tmp_path, "7"))[0] == 7
    assert (await facts(tmp_path, "killed"))[0] == -signal.SIGKILL
    code, _, errors = await facts(tmp_path, "said")
    assert (code, errors) == (1, "no such thing\n")
    code, _, errors = await facts(tmp_path, "broken")
    assert code == 1
    assert errors.startswith("Traceback (most recent call last):\n")
    assert errors.endswith("\nValueError: broken\n")


async def test_a_server_that_has_imported_everything_runs_nothing_else(tmp_path: Path) -> None:
    """A fork copies one thread only; those of gRPC or numpy would be missed."""
    process = await tiny(tmp_path)
    server = Path(f"/proc/{parent_of(process.pid)}")
    assert "grpc" in (server / "maps").read_text()
    assert len(list((server / "task").iterdir())) == 1
    process.kill()
    assert await process.wait() == -signal.SIGKILL


async def test_what_is_forked_dies_with_its_server_and_another_one_is_started(
    tmp_path: Path,
) -> None:
    first, second = await tiny(tmp_path), await tiny(tmp_path)
    server = parent_of(first.pid)
    os.kill(server, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        ends = [await first.wait(), await second.wait()]
    assert ends == [-signal.SIGKILL] * 2
    await until(lambda: not runs(first.pid) and not runs(second.pid))
    third = await tiny(tmp_path)
    assert parent_of(third.pid) != server
    third.terminate()
    assert await third.wait() == -signal.SIGTERM


async def test_everything_dies_with_the_process_that_asked_however_that_dies(
    tmp_path: Path,
) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", TWO, str(tmp_path / "log")),
        cwd=HOME,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout
    async with asyncio.timeout(PATIENCE):
        pids = [int(pid) for pid in (await parent.stdout.readline()).split()]
    server = parent_of(pids[0])
    parent.kill()
    await parent.communicate()  # to the end of what the server has of its stdout
    await until(lambda: not any(map(runs, [server, *pids])))
    assert len(pids) == 2


async def test_a_process_that_nobody_waits_for_any_more_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with Ctrl-C while the server imports."""
    running = await tiny(tmp_path)
    server = parent_of(running.pid)
    os.kill(server, signal.SIGSTOP)
    starting = asyncio.create_task(tiny(tmp_path, "first"))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    os.kill(server, signal.SIGCONT)
    last = await tiny(tmp_path)
    children = Path(f"/proc/{server}/task/{server}/children")
    await until(lambda: set(map(int, children.read_text().split())) == {running.pid, last.pid})
    assert (tmp_path / "log").read_text() == ""
    for process in (running, last):
        process.kill()
        await process.wait()


async def test_nor_does_one_whose_id_nobody_reads_any_more(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As with Ctrl-C while the server forks: the connection is reset, for the id is unread."""

    def children() -> set[str]:
        return set((server / f"task/{server.name}/children").read_text().split())

    def state() -> str:
        return (server / "stat").read_text().rpartition(")")[2].split()[0]

    with a_server():  # with this stderr
        running = await tiny(tmp_path)
        server = Path(f"/proc/{parent_of(running.pid)}")
        starting = asyncio.create_task(tiny(tmp_path))
        await asyncio.sleep(0)  # it asks
        end = time.monotonic() + PATIENCE
        while len(children()) < 2 or state() != "S":  # the id is sent, and the event loop is held
            assert time.monotonic() < end
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await until(lambda: children() == {str(running.pid)})
        running.kill()
        await running.wait()
    assert capfd.readouterr().err == ""
