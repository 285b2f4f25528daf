"""Makes an answer fit for an assistant: of bounded size, and of text that a terminal can show.

Lists that are too long end early, which the answer says; nothing else of its form changes.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.errors import MoorageError
from moorage.units.printable import printable

ANSWER_BYTES = 1 << 16
"""How long an answer may be, as JSON."""

TEXT = 2000
"""How many characters a text of an answer may have."""

SHOWN = (1000, 500, 200, 100, 50, 20, 10, 5, 2, 1)
"""Items that a list has at most; each is tried until the answer is short enough."""

CUT = "truncated"
"""The field of an answer that says which lists end early."""


class AnswerTooLongError(MoorageError):
    """There is no short form of an answer."""


def fitted(answer: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return an answer that is short and printable, also as JSON.

    If lists end early, it has the field `truncated`: for each such list its path, such as
    `items[].next`, how many items are shown, and how many there are, in the longest of a path.

    Raises:
        AnswerTooLongError: It is too long with one item in each list.
    """
    for most in SHOWN:
        cuts: dict[str, int] = {}
        found: dict[str, Any] = _fitted(answer, "", most, cuts)
        if cuts:
            found[CUT] = [
                {"list": path, "shown": most, "of": count} for path, count in cuts.items()
            ]
        text = msgspec.json.encode(found)
        if len(text) <= ANSWER_BYTES:
            return found, text.decode()
    raise AnswerTooLongError(
        f"the answer is longer than {ANSWER_BYTES} bytes: ask about one pod or one namespace"
    )


def _fitted(value: Any, path: str, most: int, cuts: dict[str, int]) -> Any:
    if isinstance(value, str):
        return short(value)
    if isinstance(value, Mapping):
        return {
            (name := short(key)): _fitted(each, f"{path}.{name}" if path else name, most, cuts)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        if len(value) > most:
            cuts[path] = max(len(value), cuts.get(path, 0))
        return [_fitted(each, f"{path}[]", most, cuts) for each in value[:most]]
    return value


def short(text: str) -> str:
    """Return a text that is printable, and says how much is left out if it is long."""
    more = len(text) - TEXT
    return printable(text if more <= 0 else f"{text[:TEXT]} ... ({more} more)", lines=True)
