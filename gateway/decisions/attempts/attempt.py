"""One attempt as it is kept: the decision itself while it is new, later packed."""

import msgspec

from gateway.decisions.records import Decision
from gateway.decisions.sentences import Facts, facts

OVERHEAD_BYTES = 600
"""What an attempt takes in addition to the packed decision, about."""


_packed = msgspec.msgpack.Encoder().encode
_unpacked = msgspec.msgpack.Decoder(Decision).decode


class Attempt(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """An attempt with what it is searched by.

    Nothing in it refers back to it, so the garbage collector may ignore it.

    Attributes:
        number: Its place among all attempts, from 1 on.
        time: When it began, in seconds since 1970.
        content: The decision; packed if it is not among the newest.
        packed_facts: The facts of a packed decision.
    """

    number: int
    namespace: str
    pod: str
    uid: str
    time: float
    profile: str
    content: Decision | bytes
    packed_facts: Facts | None = None

    @property
    def decision(self) -> Decision:
        """The decision; only a copy of it if it is packed."""
        if isinstance(self.content, bytes):
            return _unpacked(self.content)
        return self.content

    @property
    def facts(self) -> Facts:
        """What became of it."""
        return self.packed_facts or facts(self.decision)

    @property
    def packed_bytes(self) -> int:
        """What it takes if it is packed, else 0."""
        return OVERHEAD_BYTES + len(self.content) if isinstance(self.content, bytes) else 0

    def pack(self) -> None:
        """Keep the decision in less room."""
        if not isinstance(self.content, bytes):
            self.packed_facts = facts(self.content)
            self.content = _packed(self.content)

    def unpack(self) -> Decision:
        """Return the decision, to be written to."""
        self.content, self.packed_facts = self.decision, None
        return self.content
