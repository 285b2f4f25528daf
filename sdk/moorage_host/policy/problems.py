"""How mistakes are described: where they are, and what was expected.

Used by everything that reads the policy document or plugin arguments.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: the path of the value in the document, and what is wrong with it."""

    path: str
    message: str


def merged(*steps: Iterable[Problem]) -> list[Problem]:
    """Return what several checks found, one after the other.

    What a later check finds where an earlier one found something is mostly its consequence: it is
    left out.
    """
    found: dict[Problem, None] = {}
    for step in steps:
        known = {problem.path for problem in found}
        found |= dict.fromkeys(problem for problem in step if problem.path not in known)
    return list(found)


def child(path: str, key: str | int) -> str:
    """Return the path of a value in an object or an array: `profiles[0].plugins`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not key.isidentifier():
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


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
