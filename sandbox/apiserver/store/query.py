"""Reads the parameters of a request: flags and numbers."""

from collections.abc import Mapping

from sandbox.apiserver.errors import bad_request


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether a query parameter is on: present, and neither 0 nor false."""
    return query.get(name, "false").lower() not in ("0", "false")


def whole_number(query: Mapping[str, str], name: str, default: int) -> int:
    """Return a query parameter that is a number and not negative.

    Raises:
        StatusError: 400.
    """
    text = query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise bad_request(f'{name}: "{text}" is not a whole number')
    return int(text)
