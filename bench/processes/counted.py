"""Runs a module as the main program, and counts on request what it does.

python -m bench.processes.counted FILE MODULE [OPTION]...

SIGUSR1 begins to count from zero. SIGUSR2 ends it and writes the counts into FILE as JSON. What
threads beside the main one do is not seen.
"""

import runpy
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
OURS = ("gateway", "moorage", "moorage_host", "services")
SENDERS = ("MessageStream.send",)
"""Our methods that send a message to a service."""


class Counts(msgspec.Struct):
    """What a process did.

    Attributes:
        calls: Calls of Python functions that are ours, each step of a coroutine included.
        sent: Messages that the gateway sent to services.
        classes: Our classes of which a method ran, by name.
        modules: Our modules of which a function ran, by name.
        changes_of_room: Calls into another room of ours than the call before, such as from
            `gateway.edge` into `gateway.scheduling`.
    """

    calls: int = 0
    sent: int = 0
    classes: set[str] = msgspec.field(default_factory=set)
    modules: set[str] = msgspec.field(default_factory=set)
    changes_of_room: int = 0


class Counter:
    """Counts the calls of the thread in which it starts."""

    def __init__(self, file: Path) -> None:
        """Write counts into *file*."""
        self._file = file
        self._counts = Counts()
        self._modules: dict[CodeType, tuple[str, str, str]] = {}
        self._room = ""

    def start(self, *_: object) -> None:
        """Begin from zero; a signal's handler."""
        self._counts = Counts()
        sys.setprofile(self._see)

    def stop(self, *_: object) -> None:
        """Stop, and write the counts; a signal's handler."""
        sys.setprofile(None)
        temporary = self._file.with_suffix(".new")
        temporary.write_bytes(msgspec.json.encode(self._counts))
        temporary.replace(self._file)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        found = self._modules.get(code)
        if found is None:
            module = frame.f_globals.get("__name__", "")
            package, _, rest = module.partition(".")
            room = f"{package}.{rest.partition('.')[0]}"
            found = self._modules[code] = package, room, module
        package, room, module = found
        if package in OURS:
            self._counts.calls += 1
            self._counts.modules.add(module)
            self._counts.changes_of_room += room != self._room
            self._room = room
            self._counts.sent += code.co_qualname in SENDERS
        elif code.co_filename != "<string>":  # as a method that dataclasses write
            return
        if "self" in code.co_varnames[:1]:
            kind = type(frame.f_locals.get("self"))
            if kind.__module__.partition(".")[0] in OURS:
                self._counts.classes.add(f"{kind.__module__}.{kind.__qualname__}")


def main() -> None:
    """Run the module that the second argument names, with the other arguments."""
    counter = Counter(Path(sys.argv[1]))
    signal.signal(signal.SIGUSR1, counter.start)
    signal.signal(signal.SIGUSR2, counter.stop)
    module = sys.argv[2]
    del sys.argv[1:3]
    if module == "gateway":
        run_gateway()
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def run_gateway() -> None:
    """Run the gateway without what it does by the clock, which is no part of a call."""
    from gateway.app import serve
    from gateway.settings import GatewaySettings
    from moorage_host.process.lifecycle import run
    from moorage_host.settings import parse_settings

    hour = 3600.0
    settings = parse_settings(GatewaySettings, "gateway")
    run(serve(replace(settings, config_reload_interval=hour, resolve_interval=hour)))


if __name__ == "__main__":
    main()
