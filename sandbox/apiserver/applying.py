"""Server-side apply: merges what a field manager sends, and drops what it no longer sends.

Unlike the real server it detects no conflicts between managers (the last one wins) and writes no
managedFields: what each manager sent is remembered beside the object.
"""

from typing import Any

from sandbox.apiserver.store import Object
from sandbox.apiserver.strategic import MERGE_KEYS, SETS, merge_list

_IDENTITY = frozenset(("apiVersion", "kind"))


def apply_config(old: Object, before: Object, config: Object) -> Object:
    """Return the old object with a manager's configuration merged in.

    `before` is what the same manager sent last: what is in it and not in `config` is removed.
    """
    merged: Object = _merge(_removed(old, before, config), config)
    return merged


def _removed(old: Object, before: Object, config: Object) -> Object:
    result = {}
    for key, value in old.items():
        if key not in before or key in _IDENTITY:
            result[key] = value
        elif key in config:
            result[key] = _removed_within(key, value, before[key], config[key])
        elif rest := _rest(key, value, before[key]):
            result[key] = rest
    return result


def _rest(key: str, value: Any, before: Any) -> Any:
    # What others put into a map or list that the manager no longer sends.
    if isinstance(value, dict) and isinstance(before, dict):
        return _removed(value, before, {})
    if isinstance(value, list) and (key in SETS or key in MERGE_KEYS):
        return _removed_within(key, value, before, [])
    return None


def _removed_within(key: str, value: Any, before: Any, config: Any) -> Any:
    if all(isinstance(each, dict) for each in (value, before, config)):
        return _removed(value, before, config)
    if not all(isinstance(each, list) for each in (value, before, config)):
        return value
    gone = [_identity(key, each) for each in before]
    kept = [_identity(key, each) for each in config]
    return [
        each for each in value if _identity(key, each) not in gone or _identity(key, each) in kept
    ]


def _identity(field: str, element: Any) -> Any:
    key = MERGE_KEYS.get(field)
    return element.get(key) if key and isinstance(element, dict) else element


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(new, dict):
        return new
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        there = result.get(key)
        if isinstance(value, list) and isinstance(there, list):
            result[key] = merge_list(key, there, value)
        else:
            result[key] = _merge(there, value)
    return result
