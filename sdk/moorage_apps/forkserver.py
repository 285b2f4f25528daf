"""The fork server: `python -P -m moorage_apps.forkserver`, or a fork of `moorage up`.

It imports what Moorage's processes need and forks them, while it has one thread and nothing of
gRPC is started.
`cli.up.processes.forking` asks for processes.
"""

import atexit
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from moorage.units.printable import printable
from moorage_apps import make_importable
from moorage_apps.__main__ import PROCESSES, run

if TYPE_CHECKING:
    from cli.up.processes.forking import Request

prctl = ctypes.CDLL(None).prctl
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15


def main() -> None:
    """Serve over stdin."""
    make_importable()
    serve(socket.socket(fileno=os.dup(sys.stdin.fileno())))


def serve(requests: socket.socket) -> NoReturn:
    """Serve until the process that asks has ended; in a forked process, run what it is for.

    This process has a session of its own: Ctrl-C is for the process that asks.
    """
    _call_it("forkserver")
    _import_all()
    request, code = _serve(requests), 0
    try:
        run(request.module, request.arguments)
    except SystemExit as end:
        code = _code(end)
    except Exception:  # noqa: BLE001 - no caller of this function is meant
        sys.excepthook(*sys.exc_info())
        code = 1
    _end(code)


def _import_all() -> None:
    importlib.import_module("kubernetes_asyncio.config")  # else imported with the first connection
    for name in PROCESSES:
        importlib.import_module(f"{name}.__main__")
        del sys.modules[f"{name}.__main__"]  # it is run in a forked process
    registry = importlib.import_module("moorage_host.plugins.registry")
    for service in ("filter", "scorer"):
        for plugin in importlib.import_module(f"services.{service}.plugins").BUILT_INS:
            registry.version_of(plugin, registry.BUILT_IN)  # forks have what it keeps
    gc.freeze()  # collections would write to the pages that all processes share


def _serve(requests: socket.socket) -> "Request":
    """Fork a process for each request; return in that process what it is to run.

    A request is one byte with three descriptors: a socket, stdout and stderr. The rest comes
    over that socket, on which this process writes the id of the new one, and later its exit code.
    """
    server, links = os.getpid(), dict[int, socket.socket]()
    # A handler in Python would not run if a process ended just before this one begins to wait.
    ended, wakeup = socket.socketpair()
    for each in (ended, wakeup):
        each.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select((requests, ended), (), ())
        if ended in ready:
            ended.recv(4096)
            _report(links)
        if requests not in ready:
            continue
        asked, descriptors, *_ = socket.recv_fds(requests, 1, 3)
        if not asked:
            os._exit(0)  # the kernel kills what is left
        link = socket.socket(fileno=descriptors[0])
        pid = os.fork()
        if pid == 0:
            break
        links[pid] = link
        with suppress(OSError):
            link.sendall(b"%d\n" % pid)
        for descriptor in descriptors[1:]:
            os.close(descriptor)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for other in (requests, ended, wakeup, *links.values()):
        other.close()
    return _become(link, descriptors[1], descriptors[2], server)


def _report(links: dict[int, socket.socket]) -> None:
    """Send the exit codes of the processes that have ended."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = found
            with links.pop(pid) as link, suppress(OSError):  # nobody asks any more
                link.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(link: socket.socket, stdout: int, stderr: int, server: int) -> "Request":
    """Make of the forked process what `subprocess` would make of a started one."""
    import msgspec

    from cli.up.processes.forking import Request

    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)  # silently: Ctrl-C has ended the server
    asked = b""
    # Who asked may have left before it read the id.
    with link, link.makefile("rb") as file, suppress(ConnectionResetError):
        asked = file.read()
    if not asked:
        os._exit(1)  # it is not wanted any more
    request = msgspec.json.decode(asked, type=Request)
    for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
        os.close(source)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    _call_it(request.name, *request.arguments)
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    importlib.invalidate_caches()
    return request


def _call_it(name: str, *arguments: str) -> None:
    """Have `ps -e` show a name, and `ps -ef` the arguments too, as far as there is room."""
    prctl(PR_SET_NAME, name.encode())
    with suppress(OSError, ValueError, IndexError):  # only people miss it
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end
        title = " ".join(("moorage", name, *arguments)).encode(errors="replace")
        ctypes.memmove(start, title[: end - start - 1].ljust(end - start, b"\0"), end - start)


def _code(end: SystemExit) -> int:
    """Return the exit code that `sys.exit` means."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    sys.stderr.write(printable(f"{end.code}\n", lines=True))
    return 1


def _end(code: int) -> NoReturn:
    """End this process; to free what the server imported would first copy it."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
