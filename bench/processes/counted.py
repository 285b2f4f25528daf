"""Runs a module as the main program, and counts on request what it does.

python -m bench.processes.counted FILE MODULE [OPTION]...

SIGUSR1 begins to count from zero. SIGUSR2 ends it and writes the counts into FILE as JSON. What
threads beside the main one do is not seen.
"""

import runpy
import signal
import sys
from dataclasses import replace
from inspect import CO_COROUTINE
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
OURS = ("gateway", "moorage", "moorage_host", "services")
SENDERS = ("MessageStream.send",)
"""Our methods that send a message to a service."""


class Work(msgspec.Struct):
    """What the functions of one module did.

    Attributes:
        calls: Calls of Python functions, each step of a coroutine included.
        awaits: Of these the steps of coroutines.
        instructions: Instructions of Python's interpreter; what is written in C has none. Python
            3.12 and 3.13 leave some out, so compare what 3.11 counts.
    """

    calls: int = 0
    awaits: int = 0
    instructions: int = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> "Work":
        """Count an instruction; Python calls what traces a frame so."""
        self.instructions += event == "opcode"
        return self


class Counts(msgspec.Struct):
    """What a process did.

    Attributes:
        sent: Messages that the gateway sent to services.
        classes: Our classes of which a method ran, by name.
        modules: What the functions of each module did, by name: libraries are among them.
        changes_of_room: Calls into another room of ours than the call before, such as from
            `gateway.edge` into `gateway.scheduling`.
    """

    sent: int = 0
    classes: set[str] = msgspec.field(default_factory=set)
    modules: dict[str, Work] = msgspec.field(default_factory=dict)
    changes_of_room: int = 0

    def ours(self) -> dict[str, Work]:
        """Return our own modules among them."""
        return {name: work for name, work in self.modules.items() if is_ours(name)}

    @property
    def calls(self) -> int:
        """Calls of our own functions."""
        return sum(work.calls for work in self.ours().values())


def is_ours(module: str) -> bool:
    """Whether a module is one of ours."""
    return module.partition(".")[0] in OURS


class Counter:
    """Counts the calls of the thread in which it starts."""

    def __init__(self, file: Path) -> None:
        """Write counts into *file*."""
        self._file = file
        self._counts = Counts()
        self._places: dict[CodeType, tuple[str, str, bool]] = {}
        self._room = ""

    def start(self, *_: object) -> None:
        """Begin from zero; a signal's handler."""
        self._counts = Counts()
        sys.settrace(self._see)

    def stop(self, *_: object) -> None:
        """Stop, and write the counts; a signal's handler."""
        sys.settrace(None)
        self._counts.modules.pop(__name__, None)
        temporary = self._file.with_suffix(".new")
        temporary.write_bytes(msgspec.json.encode(self._counts))
        temporary.replace(self._file)

    def _see(self, frame: FrameType, _: str, __: Any) -> Work:
        code = frame.f_code
        found = self._places.get(code)
        if found is None:
            module = frame.f_globals.get("__name__", "")
            room = ".".join(module.split(".")[:2])
            found = self._places[code] = module, room, is_ours(module)
        module, room, ours = found
        work = self._counts.modules.get(module)
        if work is None:
            work = self._counts.modules[module] = Work()
        work.calls += 1
        work.awaits += code.co_flags & CO_COROUTINE != 0
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if ours:
            self._counts.changes_of_room += room != self._room
            self._room = room
            self._counts.sent += code.co_qualname in SENDERS
        elif code.co_filename != "<string>":  # as a method that dataclasses write
            return work
        if "self" in code.co_varnames[:1]:
            kind = type(frame.f_locals.get("self"))
            if is_ours(kind.__module__):
                self._counts.classes.add(f"{kind.__module__}.{kind.__qualname__}")
        return work


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
