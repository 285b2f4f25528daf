"""What every process does around its work: settings, signals, exit codes. For each `__main__`.

Exit codes: 0 after SIGTERM, SIGINT or SIGHUP and an orderly end; 1 and one line on stderr if
the user must change something; 2 for a bad option; 128+n at once when a second signal n comes.
"""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import structlog
import uvloop
from prometheus_client import disable_created_metrics

from moorage.errors import ConfigurationError, causes
from moorage_host.process.logs import Flush, LogLimits, configure_logging
from moorage_host.process.metrics import show_build
from moorage_host.settings import setting
from moorage_host.tls.identities import METRICS, OPERATOR

log = structlog.get_logger()

_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a process's coroutine; on uvloop, which takes 5 to 8 % less time for a cycle."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """Settings of every process. An inheriting class adds its own."""

    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "Least severe events that are logged."
    )
    log_format: Literal["auto", "json", "text"] = setting(
        "auto", "Form of the log on stderr; auto is text on a terminal, else JSON."
    )
    log_queue: int = 2000
    """Lines that may wait to be written, 1 MB at most; more are dropped and counted."""
    log_traceback_interval: float = 60.0
    """Seconds between two tracebacks of the same event and place: the first shows all."""
    log_repeats: int = 20
    """Warnings and errors of the same event in a row; after that one a second, with a count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings(ProcessSettings):
    """Settings of every process that has an admin server and clients."""

    admin_host: str = setting("0.0.0.0", "Address of the admin server.")  # noqa: S104
    admin_port: int = setting(
        9090,
        "Port of the admin server (/livez, /readyz, /metrics); 0 takes a free one.",
        minimum=0,
        maximum=65535,
    )
    admin_token_ttl: float = 10.0
    """Seconds that an answer about a bearer token is kept: as long as kube-apiserver keeps one."""
    allowed_host: tuple[str, ...] = setting(
        ("gateway", "gateway.moorage", "*.svc", "*.svc.cluster.local"),
        "Host names that HTTP requests may have, beside localhost and IP addresses; *.example.com"
        " is every name below.",
    )
    http_head_time: float = 10.0
    """Seconds from the first byte of an HTTP request until its head must be whole."""
    tls: Path | None = setting(
        None,
        "Folder with tls.crt, tls.key (this process's) and ca.crt (the authorities that it "
        "trusts).",
    )
    tls_reload_interval: float = 1.0
    """Seconds between two looks at these files, which cost microseconds."""
    insecure: bool = setting(
        False,
        "Allow plain text beyond loopback and Unix sockets: everybody on the network may read "
        "everything and bind any pod.",
    )
    operator_identity: tuple[str, ...] = setting(
        (OPERATOR,), "DNS names in the certificates of operators."
    )
    metrics_identity: tuple[str, ...] = setting(
        (METRICS,), "DNS names in the certificates of those who may only get /metrics."
    )
    shutdown_delay: float = setting(
        5.0,
        "Time between becoming unready and closing the port.",
        unit="seconds",
        minimum=0,
    )
    shutdown_grace: float = setting(
        20.0, "Time for calls under way to finish.", unit="seconds", minimum=0
    )


class Phase:
    """How far a process is, a readiness check; whoever starts and stops it sets the `name`."""

    name: Literal["starting", "serving", "shutting down"] = "starting"

    def problem(self) -> str | None:
        """Return why the process is not ready, or None while it serves."""
        return None if self.name == "serving" else f"the process is {self.name}"


@contextmanager
def process(name: str, settings: ProcessSettings) -> Iterator[asyncio.Event]:
    """Set up logs and signals; give the event that the first SIGTERM or SIGINT sets.

    Raises:
        SystemExit: A ConfigurationError came out of the block, alone or in a group: exit code 1,
            its text is on stderr.
    """
    flush: Flush | None = None
    try:
        flush = configure_logging(settings.log_level, settings.log_format, _log_limits(settings))
        show_build(name)
        # Otherwise each counter has a second series, which nobody needs.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        with stop_signals() as stop:
            yield stop
    except (ConfigurationError, ExceptionGroup) as error:
        mistake = next((e for e in causes(error) if isinstance(e, ConfigurationError)), None)
        if mistake is None:
            raise
        raise SystemExit(f"moorage {name}: {' '.join(str(mistake).split())}") from error
    finally:
        if flush is not None:
            flush()  # before the interpreter writes to the same stream


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Give an event that the first SIGTERM, SIGINT or SIGHUP sets.

    A second signal ends the process, but SIGHUP: of a terminal that was closed several come.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    before = {each: signal.getsignal(each) for each in _STOP}
    # Of a command in the background of a script a shell ignores SIGINT, which others may yet send.
    handled = [n for n in _STOP if n != signal.SIGHUP or before[n] is not signal.SIG_IGN]

    def receive(number: int) -> None:
        if number == signal.SIGHUP:
            _leave_terminal()
        elif stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in handled:
        loop.add_signal_handler(number, receive, number)
    try:
        yield stop
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def _leave_terminal() -> None:
    """Have what is written to a closed terminal vanish; it would be an error until the end."""
    with Path(os.devnull).open("r+b") as nothing:
        for stream in range(3):
            with suppress(OSError):
                if stat.S_ISCHR(os.fstat(stream).st_mode):
                    os.dup2(nothing.fileno(), stream)


def announce(event: str, **fields: object) -> None:
    """Write one line of JSON on stdout, for the program that started this process.

    On the real one: what plugins print goes to the log. A stdout that takes nothing, as with a
    full disk, is no reason not to serve.
    """
    line = msgspec.json.encode({"event": event, **fields}) + b"\n"
    output = sys.__stdout__ or sys.stdout
    try:
        output.flush()
        os.write(output.fileno(), line)
    except OSError as error:
        log.warning("stdout takes no line", error=str(error), line=line.decode().strip())


def _log_limits(settings: ProcessSettings) -> LogLimits:
    return LogLimits(
        queue=settings.log_queue,
        traceback_interval=settings.log_traceback_interval,
        repeats=settings.log_repeats,
    )
