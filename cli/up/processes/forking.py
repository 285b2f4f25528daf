"""Has the fork server start processes of ours, which spares each of them a second of imports.

`multiprocessing`'s fork server does not serve: each of its processes runs the main script again
(for tests, imports pytest) and keeps the server alive when the process that asks was killed, the
start blocks the event loop while the server imports, and what cannot be imported is not told.
"""

import asyncio
import atexit
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
        niceness: How far it stands back for other processes, as in nice(1); 0 is not at all.
    """

    name: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    niceness: int = 0


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
        line = await _line(reader)
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
    niceness: int = 0,
) -> Forked:
    """Run a module of ours in a process and a session of its own, without stdin.

    Args:
        module: The module.
        arguments: Its command line.
        stdout: The descriptor of the file that gets its stdout.
        stderr: The descriptor of the file that gets its stderr.
        name: What the process is called; the last part of the module's name if left out.
        environment: What is added to this process's environment.
        niceness: How far it stands back for other processes.

    Raises:
        ProcessFailedError: The fork server ended.
    """
    request = Request(
        name=name or module.rpartition(".")[2],
        module=module,
        arguments=arguments,
        environment={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
        directory=str(Path.cwd()),
        niceness=niceness,
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


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Return what the server says next; nothing if it ended."""
    try:
        return await reader.readline()
    except ConnectionError:
        return b""


class _Server:
    """The fork server of this process; it is started when the first process is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._requests = socket.socket()

    def requests(self) -> socket.socket:
        """Return the socket that takes requests, of a server that runs."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        return self._requests

    def _start(self) -> None:
        self._requests.close()
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - ourselves
                COMMAND,
                stdin=theirs.fileno(),
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,  # Ctrl-C is for us alone: we stop the others in order
            )
        atexit.register(self._stop, self._process)

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        self._requests.close()
        process.kill()
        process.wait()


_server = _Server()
