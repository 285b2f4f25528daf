"""Arrays of node names: most of what a filter or prioritize call carries.

A prioritize call brings the array that the filter call before it was answered with, so the newest
arrays are kept: comparing 200 kB takes a fraction of the time of reading them again.
"""

from collections import deque

import msgspec

from gateway.calls import NodeSet

_decode = msgspec.json.Decoder(list[str]).decode
_KEPT = 4  # arrays; one for each scheduler that may be between filter and prioritize


class NodeNamesCache:
    """Reads arrays of node names; keeps the newest that were answered."""

    def __init__(self) -> None:
        self._newest: deque[NodeSet] = deque(maxlen=_KEPT)

    def read(self, encoded: bytes) -> NodeSet:
        """Decode an array; raises msgspec.DecodeError when it is none."""
        for nodes in self._newest:
            if nodes.encoded == encoded:
                return nodes
        return NodeSet(_decode(encoded), encoded=encoded)

    def keep(self, nodes: NodeSet) -> None:
        """Expect to read the array of these nodes soon."""
        if nodes not in self._newest:
            self._newest.append(nodes)
