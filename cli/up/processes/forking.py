"""Has the fork server start processes of ours, which spares each of them a second of imports.

`multiprocessing`'s fork server does not serve: each of its processes runs the main script again
(for tests, imports pytest) and keeps the server alive when the process that asks was killed, the
start blocks the event loop while the server imports, and what cannot be imported is not reported.
"""

import asyncio
import atexit
import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from moorage.errors import ConfigurationError

COMMAND = (sys.executable, "-P", "-m", "moorage_apps.forkserver")
"""-P: modules in the current directory must not shadow ours."""

ENVIRONMENT = {
    "PYTHONUNBUFFERED": "1",
    "OPENBLAS_NUM_THREADS": "1",  # numpy would start threads, which a fork does not copy
}


class ProcessFailedError(ConfigurationError):
    """A process of ours ended, or never got ready; the message holds its last words."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to run.

    Attributes:
        name: What `ps -e` and `top` show, cut at 15 characters.
        module: The Python module that it runs.
        arguments: Its command line.
        environment: All of its environment.
        directory: Its current directory.
    """

    name: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str


class Forked:
    """A process that the fork server started; what there is works as in `asyncio.subprocess`.

    The kernel kills it when the server ends, which is when the process that asked for it ends.

    Attributes:
        pid: The process id.
        returncode: The exit code, -n if signal n killed it, None while it runs.
    """

    def __init__(
        self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Follow the process *pid*, whose exit code comes over a connection."""
        self.pid = pid
        self.returncode: int | None = None
        self._end = asyncio.create_task(self._read_end(reader, writer))

    async def wait(self) -> int:
        """Wait until it ends; return the exit code."""
        return await asyncio.shield(self._end)

    def at_end(self, close: Callable[[], None]) -> None:
        """Call *close* once it has ended."""
        self._end.add_done_callback(lambda _: close())

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):  # the exit code is on its way
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    async def _read_end(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        try:
            line = await _line(reader)
        finally:
            writer.close()
        # Without a server nothing that it started lives.
        self.returncode = int(line or -signal.SIGKILL)
        return self.returncode


async def fork(
    module: str,
    arguments: Sequence[str],
    *,
    stdout: int,
    stderr: int,
    name: str = "",
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Forked:
    """Run a module of ours in a process and a session of its own, without stdin.

    Args:
        module: The module.
        arguments: Its command line.
        stdout: The descriptor of the file that gets its stdout.
        stderr: The descriptor of the file that gets its stderr.
        name: What the process is called; the last part of the module's name if left out.
        environment: What is added to this process's environment.
        directory: Its current directory; this process's one if left out.

    Raises:
        ProcessFailedError: The fork server ended.
    """
    request = Request(
        name=name or module.rpartition(".")[2],
        module=module,
        arguments=arguments,
        environment={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
        directory=str(directory or Path.cwd()),
    )
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_server.requests(), [b"+"], [theirs.fileno(), stdout, stderr])
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        pid = await _line(reader)
    except BaseException:  # without a request the process ends
        writer.close()
        raise
    if not pid:
        writer.close()
        raise ProcessFailedError(f"{request.name} does not start: the fork server ended")
    writer.write(msgspec.json.encode(request))
    writer.write_eof()
    return Forked(int(pid), reader, writer)


def start_here() -> None:
    """Fork the server from this process, so that neither imports what the other one has.

    For a process that has neither threads nor an event loop yet. This does not return in what is
    forked.

    Raises:
        ConfigurationError: This is not Linux, whose kernel ends what a killed process has started.
    """
    if not sys.platform.startswith("linux"):
        raise ConfigurationError("moorage up works on Linux only")
    _server.fork()


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Return what the server says next; nothing if it ended."""
    try:
        return await reader.readline()
    except ConnectionError:
        return b""


class _Server:
    """The fork server of this process; it is started when the first process is needed."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._requests = socket.socket()

    def requests(self) -> socket.socket:
        """Return the socket that takes requests, of a server that runs."""
        if not self._runs():
            theirs = self._connect()
            command, environment = COMMAND, {**os.environ, **ENVIRONMENT}
            stdin = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)]
            with theirs:
                self._pid = os.posix_spawn(
                    command[0], command, environment, file_actions=stdin, setsid=True
                )
            atexit.register(self._stop)
        return self._requests

    def fork(self) -> None:
        """Start the server as a fork of this process; do not return in what is forked."""
        if self._runs():
            return
        theirs = self._connect()
        sys.stdout.flush()  # else each of them writes what waits here
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        self._pid = os.fork()
        if self._pid == 0:
            self._pid = None
            os.setsid()  # Ctrl-C is for the process that asks, also while this one begins
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            self._requests.close()
            importlib.import_module("moorage_apps.forkserver").serve(theirs)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        theirs.close()
        atexit.register(self._stop)

    def _connect(self) -> socket.socket:
        self._requests.close()
        self._requests, theirs = socket.socketpair()
        return theirs

    def _runs(self) -> bool:
        if self._pid is not None and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = None
        return self._pid is not None

    def _stop(self) -> None:
        if self._pid is not None and self._runs():
            self._requests.close()
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = None


_server = _Server()
