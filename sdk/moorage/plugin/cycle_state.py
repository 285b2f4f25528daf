"""What a filter or score plugin keeps in a cycle for the bind of the same attempt.

In memory as JSON: it goes from the replica to the gateway, and with the bind to the binder.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from moorage.snapshot import Node

CYCLE_STATE_BYTES = 65_536
"""What a plugin may keep in one cycle, unless the service is set otherwise."""

ANNOTATION = "annotation:"
"""How keys begin of what is not for bind plugins, but an annotation of the pod on its node."""

JsonText = bytes


class KeptValue(msgspec.Struct, kw_only=True):
    """The values with one key: for all nodes (empty if there is none), and for single ones."""

    json: JsonText = b""
    by_node: dict[str, JsonText] = {}

    def add(self, later: "KeptValue") -> None:
        """Take over values that were kept later with the same key, which count."""
        self.json = later.json or self.json
        self.by_node.update(later.by_node)


class CycleState:
    """Values by key, of the cycle that runs or the latest one.

    Attributes:
        limit: How many bytes of JSON they may take together.
        values: What was kept.
        note: The plugin's note about the cycle; empty if there is none.
    """

    def __init__(self) -> None:
        self.limit = CYCLE_STATE_BYTES
        self.values: dict[str, KeptValue] = {}
        self.note = ""
        self._size = 0

    def write(self, key: str, value: object, *, node: Node | str | None = None) -> None:
        """Keep a value for the bind of this attempt; bind plugins read it by its key.

        All plugins of a profile share the keys: begin them with the plugin's name if in doubt.

        Args:
            key: The key.
            value: Anything that JSON can hold.
            node: Keep it for a bind to this node only; it hides the value for all nodes.

        Raises:
            TypeError: The value is not JSON, or the key is not text.
            ValueError: The plugin keeps too much.
        """
        if not isinstance(key, str):
            raise TypeError(f"a key of the cycle state is text, not {type(key).__name__}")
        try:
            text = msgspec.json.encode(value)
        except TypeError as error:
            raise TypeError(f"cycle state {key!r} must be JSON: {error}") from error
        kept = self.values.setdefault(key, KeptValue())
        name = node.name if isinstance(node, Node) else node
        before = kept.json if name is None else kept.by_node.get(name, b"")
        self._size += len(text) - len(before)
        if self._size > self.limit:
            raise ValueError(
                f"cycle state {key!r} makes {self._size:,} bytes; the limit is {self.limit:,}"
            )
        if name is None:
            kept.json = text
        else:
            kept.by_node[name] = text

    def at(self, node: str) -> dict[str, Any]:
        """Return by key what a bind to the node called *node* would get."""
        return decode_values(values_at(self.values, node))

    def begin(self) -> None:
        """Forget what is left of an earlier cycle, or from between two cycles."""
        self.note = ""
        if self.values:
            self.values, self._size = {}, 0


def join_kept(parts: Iterable[Mapping[str, KeptValue]]) -> dict[str, KeptValue]:
    """Return what parts of a cycle kept as one; of several values the last one counts."""
    found: dict[str, KeptValue] = {}
    for values in parts:
        for key, value in values.items():
            found.setdefault(key, KeptValue()).add(value)
    return found


def values_at(values: Mapping[str, KeptValue], node: str) -> dict[str, JsonText]:
    """Return by key what applies to a node, without annotations."""
    found = {key: kept.by_node.get(node, kept.json) for key, kept in values.items()}
    return {key: text for key, text in found.items() if text and not key.startswith(ANNOTATION)}


def annotations_at(values: Mapping[str, KeptValue], node: str) -> dict[str, str]:
    """Return the annotations of the pod on a node."""
    return {
        key.removeprefix(ANNOTATION): msgspec.json.decode(kept.by_node[node], type=str)
        for key, kept in values.items()
        if key.startswith(ANNOTATION) and node in kept.by_node
    }


def decode_values(values: Mapping[str, JsonText]) -> dict[str, Any]:
    """Return values of JSON text as Python objects.

    Raises:
        msgspec.DecodeError: One is not JSON.
    """
    return {key: msgspec.json.decode(text) for key, text in values.items()}
