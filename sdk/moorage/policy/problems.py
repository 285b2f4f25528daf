"""How mistakes are told: where they are, what was expected, and the nearest known name.

Used by everything that reads the policy document or plugin arguments.
"""

import difflib
import json
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the path of the value in the document, and what is wrong with it."""

    path: str
    message: str


def child(path: str, key: str | int) -> str:
    """Return the path of a value in an object or an array: `profiles[0].plugins`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not key.isidentifier():
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean X?` with the nearest known name, or nothing if none is near."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return f", did you mean `{by_folded[near[0]]}`?" if near else ""


def shown(value: object) -> str:
    """Return a value with its type, short: `str "abc"`, `int 5`, `array`."""
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if value is None:
        return "null"
    text = json.dumps(value, ensure_ascii=False)
    return f"{type(value).__name__} {text if len(text) <= _LONGEST else text[:_LONGEST] + '...'}"


_LONGEST = 60
