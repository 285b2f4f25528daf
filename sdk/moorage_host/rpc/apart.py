"""Runs a cycle in a forked process, so that a plugin that ends its process takes nothing along.

That costs some milliseconds, so it is done for pods about which a replica was lost, and for a while
for their namespaces if a plugin has ended such a process. The fork has the snapshot and the plugins
as they are; what plugins keep there is lost.
"""

import asyncio
import gc
import os
import resource
import signal
import struct
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from mmap import PAGESIZE, mmap
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from moorage.execution import Supervisor
from moorage.execution.enabled import EnabledPlugin
from moorage_host.process.lifecycle import exit_with_parent

LONGEST_SECONDS: Final = 2.0
"""How long one plugin may take in a fork: other cycles of its session wait for it."""

MORE_BYTES: Final = 512 << 20
"""What a fork may allocate, if the container has twice as much; more is a MemoryError."""

LEAST_BYTES: Final = 32 << 20
"""What it may allocate in any case."""

CGROUP = Path("/sys/fs/cgroup")

WATCHED_SECONDS: Final = 600.0
"""How long cycles run apart about pods of the namespace for which a plugin ended a process."""

MOST_WATCHED: Final = 100
"""Namespaces that are kept for that."""

LAST_SECONDS: Final = 0.05

MOST_FORKS: Final = 3
"""Forks for one cycle: each may end with another plugin."""

LATE: Final = "did not answer in time"

NO_MEMORY: Final = 71

_HEAD = struct.Struct("<Q")
_SINCE = struct.Struct("<d")


class MarkingSupervisor(Supervisor, kw_only=True):
    """Notes which plugin runs, and since when, where another process can read it."""

    mark: Any = None

    def _budget(
        self, enabled: EnabledPlugin, now: float, *, is_step: bool = False
    ) -> tuple[float, float]:
        name = enabled.name.encode()[: len(self.mark) - _SINCE.size - 1] + b"\0"
        self.mark[_SINCE.size : _SINCE.size + len(name)] = name
        _SINCE.pack_into(self.mark, 0, time.monotonic())
        return super()._budget(enabled, now, is_step=is_step)

    def _failed(
        self, enabled: EnabledPlugin, point: str, error: BaseException, *more: Any
    ) -> Exception:
        if isinstance(error, MemoryError):
            os._exit(NO_MEMORY)  # outside of a fork, the whole process might end of it
        return super()._failed(enabled, point, error, *more)


class Ending(msgspec.Struct, frozen=True):
    """How a fork ended without an answer, the plugin that it ran, if any, and for how long."""

    plugin: str
    how: str
    seconds: float


class Watch:
    """For which namespaces cycles run apart for a while."""

    def __init__(self) -> None:
        self.is_on = False
        self._until: OrderedDict[str, float] = OrderedDict()

    def begin(self, namespace: str) -> None:
        """Begin to watch after a plugin ended a process."""
        self.is_on = True
        self._until.pop(namespace, None)
        self._until[namespace] = time.monotonic() + WATCHED_SECONDS
        if len(self._until) > MOST_WATCHED:
            self._until.popitem(last=False)

    def covers(self, namespace: str) -> bool:
        """Return whether a cycle about a pod of *namespace* runs apart now."""
        now = time.monotonic()
        while self._until and next(iter(self._until.values())) <= now:
            self._until.popitem(last=False)
        self.is_on = bool(self._until)
        return namespace in self._until


class Fork:
    """A process that runs one cycle.

    Attributes:
        child: Its number.
    """

    def __init__(self, work: Coroutine[Any, Any, bytes], mark: mmap) -> None:
        """Fork, and have the other process do *work*, which uses *mark*.

        Nothing may wait meanwhile that others would see half done.
        """
        self._mark = mark
        _SINCE.pack_into(mark, 0, time.monotonic())
        self._read, write = os.pipe()
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # gRPC's threads stay behind
            try:
                self.child = os.fork()
            except OSError:
                os.close(self._read)
                os.close(write)
                raise
        if not self.child:
            _run(work, write, parent)
        work.close()
        os.close(write)

    async def answer(self, seconds: float) -> bytes | Ending:
        """Return what the work returned, which gets so many *seconds*."""
        loop, reader, received, how = asyncio.get_running_loop(), asyncio.StreamReader(), b"", ""
        pipe, end = os.fdopen(self._read, "rb", 0), time.monotonic() + seconds
        reading, transport = asyncio.create_task(reader.read()), None
        try:
            transport, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), pipe
            )
            while not reading.done():
                left = min(end, self._since + LONGEST_SECONDS) - time.monotonic()
                if left <= 0:
                    how = LATE
                    break
                await asyncio.wait([reading], timeout=left)
            else:
                received = reading.result()
            if not (received or how):
                await asyncio.sleep(LAST_SECONDS)  # it has closed the pipe, and ends
        finally:
            ran = time.monotonic() - self._since
            reading.cancel()
            (transport or pipe).close()
            with suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
            ended = asyncio.to_thread(os.waitpid, self.child, 0)
            _, status = await asyncio.shield(asyncio.ensure_future(ended))
        if len(received) >= _HEAD.size:
            (size,) = _HEAD.unpack_from(received)
            if size == len(received) - _HEAD.size:
                return received[_HEAD.size :]
        plugin = bytes(self._mark[_SINCE.size :]).partition(b"\0")[0].decode(errors="replace")
        return Ending(plugin=plugin, how=how or _how(status), seconds=ran)

    @property
    def _since(self) -> float:
        """When the plugin that runs was called, or the fork began."""
        since: float = _SINCE.unpack_from(self._mark)[0]
        return since


async def run_apart(
    work: Callable[[mmap], Coroutine[Any, Any, bytes]],
    turn: asyncio.Lock,
    seconds: float,
    note: Callable[[Ending], bool],
) -> bytes | str:
    """Return what *work* returns in a fork, or why it returned nothing.

    It is begun in a *turn*. A fork that ends early is noted, and the work done once more if *note*
    returns true: the plugin that ended it is not called then.
    """
    end, problem = time.perf_counter() + seconds, ""
    for _ in range(MOST_FORKS):
        mark = mmap(-1, PAGESIZE)
        async with turn:
            task = work(mark)
            try:
                fork = Fork(task, mark)
            except OSError as error:  # no processes, descriptors or memory are left
                task.close()
                return f"no process of its own could be started: {error}"
        ended = await fork.answer(end - time.perf_counter())
        if isinstance(ended, bytes):
            return ended
        by = f"plugin {ended.plugin}" if ended.plugin else "the cycle"
        problem = f"{by} ran in a process of its own, which {ended.how}"
        if not note(ended):
            break
    return problem


def _how(status: int) -> str:
    if status == NO_MEMORY << 8:
        return "ended for lack of memory"
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"ended with exit code {os.waitstatus_to_exitcode(status)}"


def _run(work: Coroutine[Any, Any, bytes], write: int, parent: int) -> NoReturn:
    code = 70
    try:
        exit_with_parent(parent)
        gc.disable()  # it would copy pages, and end what belongs to the other process
        signal.set_wakeup_fd(-1)
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (_reserved() + more_bytes(), hard))
        asyncio._set_running_loop(None)
        answer = asyncio.SelectorEventLoop().run_until_complete(work)
        message = memoryview(_HEAD.pack(len(answer)) + answer)
        while message:
            message = message[os.write(write, message) :]
        code = 0
    except BaseException:  # noqa: BLE001 - the other process goes on, and says what it sees
        code = 70
    finally:
        os._exit(code)


def more_bytes() -> int:
    """Return what a fork may allocate; a container without room for it would end as a whole."""
    for most, used in (("max", "current"), ("limit_in_bytes", "usage_in_bytes")):
        folder = CGROUP if most == "max" else CGROUP / "memory"
        with suppress(OSError, ValueError):  # another version of cgroups, or no limit
            limit = int((folder / f"memory.{most}").read_text())
            room = limit - int((folder / f"memory.{used}").read_text())
            return max(min(room // 2, MORE_BYTES), LEAST_BYTES)
    return MORE_BYTES


def _reserved() -> int:
    """Return what this process has reserved of memory for data, which counts too."""
    return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
