"""Arrays of node names: most of what a filter or prioritize call carries.

A prioritize call brings the very array that the filter call before it was answered with, so the
newest arrays are kept: comparing 200 kB takes a fraction of the time of reading them again.
"""

from collections import deque
from collections.abc import Sequence

import msgspec

_decode = msgspec.json.Decoder(list[str]).decode
_KEPT = 4  # arrays; one for each scheduler that may be between filter and prioritize


class NodeNames(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Node names and their JSON.

    Attributes:
        names: In order.
        encoded: The JSON array of exactly these names.
        plain: Whether the names can be put between quotes without escaping anything.
    """

    names: Sequence[str]
    encoded: bytes
    plain: bool

    @classmethod
    def of(cls, names: Sequence[str]) -> "NodeNames":
        """Encode names that are distinct."""
        encoded = msgspec.json.encode(names)
        return cls(names=names, encoded=encoded, plain=b"\\" not in encoded)


class NodeNamesMemory:
    """Reads and writes arrays of node names, and knows the newest again."""

    def __init__(self) -> None:
        self._newest: deque[NodeNames] = deque(maxlen=_KEPT)

    def read(self, encoded: bytes) -> NodeNames:
        """Decode an array; raises msgspec.DecodeError when it is none."""
        for known in self._newest:
            if known.encoded == encoded:
                return known
        names = _decode(encoded)
        return NodeNames(names=names, encoded=encoded, plain=b"\\" not in encoded)

    def write(self, feasible: Sequence[str], asked: NodeNames) -> NodeNames:
        """Encode a part of the names that were asked about, and expect to read it soon."""
        chosen = asked if feasible is asked.names else _subset(feasible, asked)
        if chosen not in self._newest:
            self._newest.append(chosen)
        return chosen


def _subset(feasible: Sequence[str], asked: NodeNames) -> NodeNames:
    encoded = _plain_array(feasible) if asked.plain else msgspec.json.encode(feasible)
    return NodeNames(names=feasible, encoded=encoded, plain=asked.plain)


def _plain_array(names: Sequence[str]) -> bytes:
    return ('["' + '","'.join(names) + '"]').encode() if names else b"[]"
