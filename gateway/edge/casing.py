"""Gives a request Go's casing, the way Go's decoder would read it: any casing, the last one counts.

The slow path of `gateway.edge.requests`: kube-scheduler never needs it, other callers may.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

Rewrite: TypeAlias = Callable[[msgspec.Raw], msgspec.Raw]

_as_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_as_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


def fields(known: Mapping[str, Rewrite]) -> Rewrite:
    """Rewrite an object: give the known keys their casing and drop the others."""
    spellings = {name.casefold(): name for name in known}

    def rewrite(value: msgspec.Raw) -> msgspec.Raw:
        if not _begins(value, b"{"):
            return value
        result = {}
        for key, inner in _as_object(value).items():
            name = spellings.get(key.casefold())
            if name is not None:
                result[name] = known[name](inner)
        return msgspec.Raw(msgspec.json.encode(result))

    return rewrite


def values(rewrite_value: Rewrite) -> Rewrite:
    """Rewrite every value of a map; keys are data and stay."""

    def rewrite(value: msgspec.Raw) -> msgspec.Raw:
        if not _begins(value, b"{"):
            return value
        result = {key: rewrite_value(inner) for key, inner in _as_object(value).items()}
        return msgspec.Raw(msgspec.json.encode(result))

    return rewrite


def items(rewrite_item: Rewrite) -> Rewrite:
    """Rewrite every item of a list."""

    def rewrite(value: msgspec.Raw) -> msgspec.Raw:
        if not _begins(value, b"["):
            return value
        return msgspec.Raw(msgspec.json.encode([rewrite_item(item) for item in _as_list(value)]))

    return rewrite


def verbatim(value: msgspec.Raw) -> msgspec.Raw:
    """Leave a value as it is."""
    return value


def _begins(value: msgspec.Raw, opening: bytes) -> bool:
    # What is not the expected kind stays, so that decoding it afterwards names the path.
    return bytes(memoryview(value)[:1]) == opening
