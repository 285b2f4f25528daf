"""JSON patch (RFC 6902)."""

from typing import Any

from sandbox.apiserver.errors import Cause, StatusError, bad_request, invalid
from sandbox.apiserver.incoming import without_nulls
from sandbox.apiserver.store import Object

MAX_OPERATIONS = 10_000


def apply_json_patch(old: Object, operations: Any) -> Any:
    """Return the old object with the operations applied, all or none.

    Raises:
        StatusError: 400 for a malformed operation, 422 for a test that fails or a missing path.
    """
    if not isinstance(operations, list):
        raise bad_request("a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise bad_request(f"a JSON patch may have {MAX_OPERATIONS} operations")
    document: Any = without_nulls(old)  # a deep copy
    for operation in operations:
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict):
        raise bad_request("each operation of a JSON patch must be an object")
    kind, path = operation.get("op"), _path(operation, "path")
    if kind in ("add", "replace", "test"):
        if "value" not in operation:
            raise bad_request(f"the operation {kind} needs a value")
        value = operation["value"]
        if kind == "test":
            return _test(document, path, value)
        return _set(document, path, value, replace=kind == "replace")
    if kind == "remove":
        return _remove(document, path)
    if kind in ("move", "copy"):
        source = _path(operation, "from")
        value = without_nulls(_find(document, source))
        if kind == "move":
            document = _remove(document, source)
        return _set(document, path, value, replace=False)
    raise bad_request(f"unknown operation {kind!r} in a JSON patch")


def _path(operation: Object, key: str) -> list[str]:
    text = operation.get(key)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise bad_request(f'{key} of a JSON patch must be a pointer such as "/metadata/labels"')
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _test(document: Any, path: list[str], value: Any) -> Any:
    if _find(document, path) != value:
        raise _unprocessable(path, "testing value failed")
    return document


def _find(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(document, part, path, len(document) - 1)]
        else:
            raise _unprocessable(path, "the path does not exist")
    return document


def _set(document: Any, path: list[str], value: Any, *, replace: bool) -> Any:
    if not path:
        return value
    parent, last = _find(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        if replace and last not in parent:
            raise _unprocessable(path, "the path does not exist")
        parent[last] = value
    elif isinstance(parent, list) and replace:
        parent[_index(parent, last, path, len(parent) - 1)] = value
    elif isinstance(parent, list):
        place = len(parent) if last == "-" else _index(parent, last, path, len(parent))
        parent.insert(place, value)
    else:
        raise _unprocessable(path, "the path does not exist")
    return document


def _remove(document: Any, path: list[str]) -> Any:
    _find(document, path)
    if not path:
        raise _unprocessable(path, "the whole object cannot be removed")
    parent, last = _find(document, path[:-1]), path[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return document


def _index(values: list[Any], text: str, path: list[str], highest: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > highest:
        raise _unprocessable(path, f"the list has {len(values)} elements")
    return int(text)


def _unprocessable(path: list[str], why: str) -> StatusError:
    field = "/" + "/".join(path)
    cause = Cause(field=field, reason="FieldValueInvalid", message=why)
    return invalid("JSONPatch", "", [cause])
