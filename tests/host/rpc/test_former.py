"""What a process learns of the one before it that ended without stopping."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
from structlog.testing import capture_logs

from moorage.execution import mark
from moorage.execution.mark import marked
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc import former
from moorage_host.rpc.former import MarkFile
from tests.needs import needed

PORT = 50051

HOLDS = """
import fcntl, sys
file = open(sys.argv[1], "rb+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""

IN_FULL_MEMORY = """
import sys
from moorage.execution import mark
from moorage_host.rpc import former
former.FOLDERS = (sys.argv[1],)
former.MarkFile(1, "r1")
mark.memory[mark.RUNS] = 1
print(len(mark.memory))
"""


class Begin(Protocol):
    def __call__(self, replica: str, port: int = PORT) -> MarkFile: ...


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(former, "FOLDERS", (str(tmp_path / "missing"), str(tmp_path)))
    monkeypatch.setattr(mark, "memory", bytearray(mark.SIZE))
    return tmp_path


@pytest.fixture
def begin(folder: Path) -> Iterator[Begin]:
    """Yield what begins a process of that name, which ends without stopping."""
    with ExitStack() as files:

        def begin(replica: str, port: int = PORT) -> MarkFile:
            made = MarkFile(port, replica)
            files.callback(made.remove)
            return made

        yield begin


def works(*plugins: str, runs: bool) -> None:
    """Mark that plugins have begun for a pod, of which the last may still run."""
    pod = b"\0shop/web-1"
    mark.memory[mark.CYCLE] = pod.ljust(mark.CYCLE.stop - mark.CYCLE.start, b"\0")
    for plugin in plugins:
        mark.memory[mark.COUNT] += 1
        mark.memory[mark.PLUGIN] = marked(plugin)
    mark.memory[mark.RUNS] = runs


ON_POD = {"replica": "r1", "namespace": "shop", "pod": "web-1"}


@pytest.mark.parametrize(
    ("plugins", "runs", "plugin"),
    [
        pytest.param(["First", "Second"], True, "Second", id="while the second ran"),
        pytest.param(["First"], False, "First", id="after the only one"),
        pytest.param(["First", "Second"], False, "", id="after two, which may both be why"),
        pytest.param([], False, "", id="before any"),
        pytest.param(["N" * 300], True, "N" * 127, id="a long name"),
    ],
)
def test_the_plugin_is_named_where_it_is_certain(
    begin: Begin, plugins: list[str], runs: bool, plugin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin("r1")
    works(*plugins, runs=runs)
    monkeypatch.setenv(mark.FORMER_END, "SIGSEGV")
    found = begin("r2").former
    assert found == pb.FormerProcess(**ON_POD, plugin=plugin, end="SIGSEGV")


def test_a_process_that_worked_on_nothing_says_so(begin: Begin) -> None:
    begin("r1")
    works("First", runs=False)
    mark.memory[mark.POD] = 0
    assert begin("r2").former == pb.FormerProcess(replica="r1")
    assert begin("r3", PORT + 1).former == pb.FormerProcess(), "another service's is not ours"


def test_a_plugin_that_ended_it_in_a_manual_call_is_named_in_the_log(begin: Begin) -> None:
    begin("r1")
    works("First", runs=True)
    mark.memory[mark.POD] = 0
    with capture_logs() as logs:
        assert begin("r2").former == pb.FormerProcess(replica="r1"), "no pod is to be suspected"
    (line,) = logs
    assert (line["log_level"], line["plugin"]) == ("error", "First")


def test_one_that_stopped_in_order_leaves_nothing(begin: Begin, folder: Path) -> None:
    first = begin("r1")
    works("First", runs=True)
    first.remove()
    assert not [each for each in folder.rglob("*") if each.is_file()]
    assert begin("r2").former == pb.FormerProcess()


def test_one_that_serves_beside_it_is_left_alone(begin: Begin, folder: Path) -> None:
    first = begin("r1")
    (file,) = (each for each in folder.rglob("*") if each.is_file())
    beside = file.with_name(f"{PORT}-1")
    beside.write_bytes(bytes(mark.SIZE))
    first.remove()
    command = [sys.executable, "-c", HOLDS, str(beside)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert begin("r2").former == pb.FormerProcess()
        assert beside.exists()
        other.communicate(timeout=20)


def test_files_of_other_ports_are_removed_once_they_are_old(begin: Begin, folder: Path) -> None:
    begin("r1")
    (own,) = folder.iterdir()
    old, new = own / "1-1", own / "2-2"
    for file in (old, new):
        file.write_bytes(bytes(mark.SIZE))
    os.utime(old, (0, 0))
    begin("r2")
    assert not old.exists()
    assert new.exists()


def test_a_folder_that_others_may_write_to_is_not_used(begin: Begin, folder: Path) -> None:
    first = begin("r1")
    (own,) = folder.iterdir()
    own.chmod(0o777)
    works("First", runs=True)
    assert begin("r2").former == pb.FormerProcess()
    own.chmod(0o700)
    first.remove()


def test_a_process_lives_without_marks_if_shared_memory_is_full(tmp_path: Path) -> None:
    namespace = [needed("unshare"), "--map-root-user", "--mount"]
    probe = subprocess.run([*namespace, "true"], check=False, capture_output=True, timeout=60)
    if probe.returncode:
        pytest.skip("this machine allows no namespaces of mounts")
    own = tmp_path / "moorage-0"
    script = f"""
        mount -t tmpfs -o size=64k tmpfs {tmp_path}
        mkdir -m 700 {own}
        head -c 100k /dev/zero > {tmp_path}/other
        exec {sys.executable} - {tmp_path}
    """
    command = [*namespace, "sh", "-c", script]
    ended = subprocess.run(
        command, input=IN_FULL_MEMORY, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended
    assert ended.stdout.splitlines()[-1] == str(mark.SIZE)
