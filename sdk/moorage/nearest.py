"""Finds what somebody may have meant by a name that nobody knows."""

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean X?` with the nearest known name, or nothing if none is near."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.6)
    return f", did you mean `{by_folded[near[0]]}`?" if near else ""
