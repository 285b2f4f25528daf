"""A command ends by a signal or a full disk: with a sentence at most, and nothing is left."""

import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from cli.up.cluster import PODS, create
from cli.up.kubeconfig import kubeconfig
from cli.up.processes import free_ports
from sandbox.client import Api
from tests.cli.support import PATIENCE, moorage, pod, processes_in, ran
from tools.planes.embedded import answers
from tools.waiting import until

RUN = """
import os, resource, signal, sys
module, number, room = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
del sys.argv[1:4]
here = os.getpid()
def interrupt(event, arguments):
    if event == "import" and arguments[0] == module and os.getpid() == here:
        os.kill(here, number)
sys.addaudithook(interrupt)
if room >= 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
from moorage_apps.command import main
main()
"""
"""Runs the command; a signal comes with the import of a module, and files have little room."""

PLUGIN = """
import colorsys
from moorage import FilterPlugin

class NotHot(FilterPlugin):
    def filter_node(self, pod, node):
        return None
"""


def run(
    home: Path, *arguments: str, at: str = "", number: int = 0, room: int = -1, out: str = ""
) -> tuple[int, str, list[str]]:
    """Run `moorage ARGUMENTS`; return its exit code, its stderr, and the files that are left."""
    (home / "tmp").mkdir()
    (home / "plugin.py").write_text(PLUGIN)
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",  # half of a .pyc file stays where there is no room
        "TMPDIR": str(home / "tmp"),
        "XDG_RUNTIME_DIR": str(home / "runtime"),
    }
    with Path(out or os.devnull).open("w") as stdout:
        ended = subprocess.run(
            [sys.executable, "-c", RUN, at, str(number), str(room), *arguments],
            cwd=home,
            env=environment,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    return ended.returncode, ended.stderr, files_in(home)


def files_in(home: Path) -> list[str]:
    """Return what is in a folder but for the plugin, and no empty folder."""
    files = {str(each.relative_to(home)) for each in home.rglob("*") if each.is_file()}
    return sorted(files - {"plugin.py"})


@pytest.mark.parametrize(
    ("arguments", "at", "number"),
    [
        (("up",), "click", signal.SIGINT),
        (("up",), "cli.up.run", signal.SIGINT),
        (("up",), "cli.up.run", signal.SIGTERM),
        (("up",), "cli.up.run", signal.SIGHUP),
        (("up", "--plugin=plugin.py"), "colorsys", signal.SIGINT),
        (("explain", "p"), "cli.decisions.explain", signal.SIGINT),
        (("explain", "p"), "pathlib", signal.SIGINT),
    ],
    ids=lambda each: each.name if isinstance(each, signal.Signals) else str(each),
)
def test_a_signal_while_it_begins_ends_it_without_a_word(
    tmp_path: Path, arguments: tuple[str, ...], at: str, number: signal.Signals
) -> None:
    code, errors, left = run(tmp_path, *arguments, at=at, number=number)
    assert (code, errors, left) == (130, "", [])


@pytest.mark.parametrize(
    ("room", "arguments", "problem"),
    [
        (100, ("certs",), "cannot write certificates in certs: file too large"),
        (0, ("up",), "no folder for logs can be made (no usable temporary directory found in "),
        (100, ("up", "--plugin=plugin.py"), "/policy.yaml: file too large"),
    ],
    ids=lambda each: each[-1] if isinstance(each, tuple) else None,
)
def test_a_full_disk_is_a_sentence_and_no_half_of_a_file(
    tmp_path: Path, room: int, arguments: tuple[str, ...], problem: str
) -> None:
    code, errors, left = run(tmp_path, *arguments, room=room)
    assert code == 1
    first, *more = errors.splitlines()
    assert first.startswith("moorage: ")
    assert problem in first
    assert [line for line in more if not line.startswith("The logs of this run are in ")] == []
    assert left == []


@pytest.mark.parametrize("arguments", [("--help",), ("up", "--once")], ids=str)
def test_a_stdout_that_takes_nothing_is_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    code, errors, _ = run(tmp_path, *arguments, out="/dev/full")
    assert code == 1
    *_, last = errors.splitlines()
    assert last == "moorage: cannot write: no space left on device"
    assert "Traceback" not in errors


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run `moorage up` on a terminal of its own; give the other end, which closes it."""
    ours, theirs = os.openpty()
    (tmp_path / "tmp").mkdir()
    environment = {"TMPDIR": str(tmp_path / "tmp"), "XDG_RUNTIME_DIR": str(tmp_path / "runtime")}
    controlled = f"import fcntl; fcntl.ioctl(0, {termios.TIOCSCTTY}, 0)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{controlled}\n{RUN}", "", "0", "-1", "up"],
        cwd=tmp_path,
        env={**os.environ, **environment},
        start_new_session=True,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        yield ours, process
    finally:
        with suppress(OSError):
            os.close(ours)
        process.kill()
        process.wait(PATIENCE)


async def test_a_closed_terminal_ends_it_and_leaves_nothing(
    tmp_path: Path, terminal: tuple[int, subprocess.Popen[bytes]]
) -> None:
    shown, (end, process) = bytearray(), terminal
    os.set_blocking(end, False)

    def stays() -> bool:
        with suppress(BlockingIOError):
            shown.extend(os.read(end, 65536))
        return b"Ctrl-C stops it" in shown

    await until(stays)
    os.close(end)
    await until(lambda: process.poll() is not None)
    assert process.returncode == 0, shown
    await until(lambda: processes_in(tmp_path) == [])
    assert files_in(tmp_path) == []


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


async def test_ps_tells_the_processes_apart_and_a_signal_may_come_twice(tmp_path: Path) -> None:
    async with moorage(tmp_path, "up") as command:
        await command.line("The cluster stays up")
        names = ("gateway", "filter", "scorer-1", "binder", "api-server", "kube-scheduler")
        for name in names:
            (pid,) = command.processes(name)
            assert command_line(pid).startswith(f"moorage {name}")
        command.signal(signal.SIGHUP)
        command.signal(signal.SIGHUP)
        assert await command.ended() == (0, "")
        assert list(command.home.iterdir()) == []
        assert not (tmp_path / "runtime/moorage/kubeconfig").exists()


KEPT = ("gateway", "filter", "scorer-1", "binder", "kube-scheduler")
"""The processes that `up` starts again."""


async def test_any_process_may_die_and_pods_are_placed_again(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    ready = f"http://127.0.0.1:{port}/readyz"
    async with moorage(tmp_path, "up", "--nodes=2", f"--admin-port={port}") as command:
        await command.line("The cluster stays up")
        killed = command.processes(*KEPT)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        async with Api(command.api) as api:
            await create(api, [pod("p", schedulerName="moorage")])

            async def all_serve() -> bool:
                found = command.processes(*KEPT)
                if len(found) < len(KEPT) or {*found} & {*killed} or not await answers(ready):
                    return False  # the gateway is ready once filter and scorer are
                return all(each["spec"].get("nodeName") for each in (await api.list(PODS))[0])

            await until(all_serve)
        command.signal(signal.SIGINT)
        assert await command.ended() == (0, "")


@pytest.mark.parametrize(("command", "end"), [(("explain", "p"), 1), (("doctor",), 2)], ids=str)
async def test_after_the_end_of_up_a_command_says_that_it_no_longer_runs(
    tmp_path: Path, command: tuple[str, ...], end: int
) -> None:
    left = tmp_path / "left.yaml"
    left.write_text(yaml.safe_dump(kubeconfig("http://127.0.0.1:9", "http://127.0.0.1:9")))
    code, said = await ran(*command, f"--kubeconfig={left}")
    assert code == end
    assert said.startswith("moorage: `moorage up` no longer runs: ")
