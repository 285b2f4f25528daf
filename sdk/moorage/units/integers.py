"""Integers in label and taint values, as Go reads them, for the operators Gt and Lt."""

import re
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,64}")
_INT64: Final = range(-(2**63), 2**63)


def parse_int64(text: str) -> int | None:
    """Read a 64-bit integer: ASCII digits with an optional sign, without spaces or underscores."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if number in _INT64 else None
