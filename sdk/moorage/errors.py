"""Everything that Moorage raises on purpose.

    MoorageError
    ├── ConfigurationError      the user must change a file or an option
    │   └── PluginLoadError     ... a plugin's code
    ├── PluginFailedError       a plugin raised, returned nonsense, or took too long
    ├── UnknownNameError        a cycle asks for a profile, plugin or node that does not exist
    ├── NoStateError            a cycle came before any state
    ├── TooManyNodesError       a node's row is beyond what the replica was set to keep
    └── TooManyObjectsError     the same of pods, and of the objects that plugins read

A "no" is not here: it is a value (`moorage.Rejection`).
"""

import difflib
import heapq
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import takewhile


class MoorageError(Exception):
    """The root of the tree."""


class ConfigurationError(MoorageError):
    """A setting, policy or option is wrong; the message has place and fix."""


class PluginLoadError(ConfigurationError):
    """A plugin cannot be imported or is not a plugin; the message names the file and the line."""


class PluginFailedError(MoorageError):
    """A plugin did not do its work in a cycle; the message names the file and the line."""

    def __init__(self, plugin: str, point: str, problem: str) -> None:
        super().__init__(f"plugin {plugin} failed in {point}: {problem}")
        self.plugin = plugin
        self.point = point
        self.problem = problem


class UnknownNameError(MoorageError):
    """A cycle asks for a profile, a plugin or a node that does not exist."""


class NoStateError(MoorageError):
    """A cycle came before any state, and brought no nodes of its own."""


class TooManyNodesError(MoorageError, ValueError):
    """A node's row is beyond the tables that a replica may keep; nothing has changed."""


class TooManyObjectsError(MoorageError, ValueError):
    """There are more pods, or objects that plugins read, than a replica may keep."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, or those that a group of exceptions holds, however deep."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from causes(inner)
    else:
        yield error


MOST_COMPARED = 50
"""Names that are compared letter by letter, which takes 0.3 ms for each that is alike."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean X?` with the nearest known name, or nothing if none is near.

    Of many names, those that begin and end like the given one are looked at.
    """
    folded, by_folded = name.lower(), {candidate.lower(): candidate for candidate in known}
    some: Iterable[str] = by_folded
    if len(by_folded) > MOST_COMPARED:
        some = heapq.nlargest(MOST_COMPARED, by_folded, key=partial(_common_ends, folded))
    near = difflib.get_close_matches(folded, some, n=1, cutoff=0.6)
    return f", did you mean `{by_folded[near[0]]}`?" if near else ""


def _common_ends(one: str, other: str) -> int:
    """Return how many letters two names have in common at their beginnings and ends."""
    return sum(map(_common, (one, one[::-1]), (other, other[::-1])))


def _common(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
