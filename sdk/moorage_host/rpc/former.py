"""Reports what the process before this one was doing when it ended, by the marks that it left.

Each process of filter and scorer maps its marks (`moorage.execution.mark`) to a file in shared
memory, which outlives a container of a pod, and removes the file when it stops. A file that nobody
has locked is that of a process that ended without stopping.
"""

import fcntl
import math
import os
import stat
import time
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from tempfile import gettempdir
from typing import Final

import structlog

from moorage.execution import mark
from moorage.v1 import types_pb2 as pb

FOLDERS: Final = ("/dev/shm",)  # noqa: S108 - the folder in it is this user's alone
"""Where the files may be, else in the temporary folder; a forked process may have another one."""

OLD_SECONDS: Final = 86400.0
"""After which the file of any ended process is removed; nobody may serve on its port again."""

log = structlog.get_logger()


class MarkFile:
    """The marks of this process, in a file.

    Attributes:
        former: What the process before this one was doing; empty if that is not known.
    """

    def __init__(self, port: int, replica: str) -> None:
        """Map the marks of the process that serves on *port* under the name *replica*.

        Without a file nobody reads them; the process runs all the same.
        """
        self.former = pb.FormerProcess()
        self._path: Path | None = None
        end = os.environ.pop(mark.FORMER_END, "")  # not for what plugins start
        try:
            folder = _folder()
            self.former = _former(folder, port, end)
            self._map(folder / f"{port}-{os.getpid()}")
        except OSError as error:
            log.warning("Marks of plugins are not kept", error=str(error))
        mark.memory[mark.REPLICA] = replica.encode().ljust(32, b"\0")

    def _map(self, path: Path) -> None:
        path.touch(mode=0o600, exist_ok=False)
        self._file = path.open("rb+", buffering=0)
        self._path = path
        # Unlike flock, this lock is not handed on to children of plugins, which may live longer.
        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A mark in a file without pages would end the process, by SIGBUS, if memory is full.
        self._file.write(bytes(mark.SIZE))
        mark.memory = mmap(self._file.fileno(), mark.SIZE)

    def remove(self) -> None:
        """Remove the file: this process stops in order."""
        if self._path is not None:
            mark.memory = bytearray(mark.SIZE)
            self._path.unlink(missing_ok=True)
            with suppress(OSError):  # a plugin may have closed it
                self._file.close()


def _folder() -> Path:
    """Return the folder of this user's files, which nobody else can write to.

    Raises:
        OSError: There is none, or it is not safe.
    """
    parent = next((each for each in FOLDERS if os.access(each, os.W_OK)), gettempdir())
    folder = Path(parent) / f"moorage-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not this user's alone")
    return folder


def _former(folder: Path, port: int, end: str) -> pb.FormerProcess:
    """Return what the marks of the latest process say that has ended; remove such files."""
    content = b""
    for path in sorted(folder.iterdir(), key=_changed):
        if path.name.startswith(f"{port}-"):
            content = _taken(path) or content
        elif time.time() - _changed(path) > OLD_SECONDS:
            _taken(path)
    if len(content) < mark.SIZE:
        return pb.FormerProcess()
    pod = mark.text_at(content, slice(mark.POD, mark.CYCLE.stop))
    plugin = mark.text_at(content, slice(1, mark.PLUGIN.stop))
    if content[mark.RUNS] and not pod:  # no gateway has sent that pod
        log.error(
            "The process before this one has crashed in a manual call", plugin=plugin, how=end
        )
    # Between two calls only a plugin that was the only one can be why.
    is_known = pod and (content[mark.RUNS] or content[mark.COUNT] == 1)
    namespace, _, name = pod.partition("/")
    return pb.FormerProcess(
        replica=mark.text_at(content, mark.REPLICA),
        namespace=namespace,
        pod=name,
        plugin=plugin if is_known else "",
        end=end,
    )


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # its process has just stopped
        return math.inf


def _taken(path: Path) -> bytes:
    """Remove the file of a process that has ended; return what is in it."""
    try:
        with path.open("rb+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            content = file.read(mark.SIZE)
    except OSError:  # the process serves beside this one, or has just stopped
        return b""
    path.unlink(missing_ok=True)
    return content
