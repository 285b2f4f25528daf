"""Makes text of others fit for people: on terminals, in logs, in Events.

Reasons, conditions and names come from whoever may write an object. What a terminal would act on,
what turns the direction of writing and what is no character must not get through.
"""

from typing import Final

KEPT: Final = "\n\t"
"""What texts of several lines may have."""


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return a text with what cannot be printed written as in JSON, such as ``\u001b``.

    Args:
        text: Any text.
        lines: Whether it may have several lines, and tabs.
    """
    if text.isprintable():
        return text
    kept = KEPT if lines else ""
    return "".join(c if c.isprintable() or c in kept else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
