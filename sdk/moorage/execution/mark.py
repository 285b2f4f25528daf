"""Marks which plugin runs, and for which pod, where the next process can read it.

A plugin that ends its process leaves no other trace. The marks are bytes in memory, which a service
maps to a file (`moorage_host.rpc.former`). Each call of a plugin copies some, which costs less than
a tenth of a microsecond.
"""

from typing import Any, Final

SIZE: Final = 512

RUNS: Final = 0
"""Whether the plugin runs now."""

PLUGIN: Final = slice(0, 128)
"""The plugin that was called last, after `RUNS`."""

COUNT: Final = 128
"""How many plugins have begun in this cycle, 255 at most."""

CYCLE: Final = slice(128, 480)
"""The pod of the cycle, as NAMESPACE/NAME, after `COUNT`."""

POD: Final = 129
"""Where the pod begins; there is no cycle if a zero is there."""

REPLICA: Final = slice(480, 512)
"""The replica's name for itself."""

FORMER_END: Final = "MOORAGE_FORMER_END"
"""The variable in which who starts a process again says how the former one ended."""

memory: Any = bytearray(SIZE)
"""The marks: a bytearray, or a map of a file."""


def marked(name: str) -> bytes:
    """Return what marks that the plugin with this name runs."""
    size = PLUGIN.stop - 1
    return b"\1" + name.encode()[:size].ljust(size, b"\0")


def kept_of(name: str) -> str:
    """Return what the marks have room for of a plugin's name."""
    return text_at(marked(name), slice(1, PLUGIN.stop))


def text_at(content: bytes, place: slice) -> str:
    """Return a text among marks."""
    return content[place].partition(b"\0")[0].decode(errors="replace")
