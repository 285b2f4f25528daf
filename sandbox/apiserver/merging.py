"""JSON merge patch (RFC 7386)."""

from typing import Any

from sandbox.apiserver.store import Object


def merge(old: Any, change: Object) -> Object:
    """Return the old value with the change merged in: null removes, objects merge."""
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value) if isinstance(value, dict) else value
    return result
