"""The difference of two renderings, as JSON patches (RFC 6902) that compose with others."""

from collections.abc import Iterator
from typing import Any

Operation = dict[str, Any]


def operations(old: Any, new: Any, path: str = "") -> Iterator[Operation]:
    """Yield what makes one object of another.

    Items are added at the end of a list, or at its beginning, so that patches of several components
    do not undo each other; a list that changes otherwise is replaced.
    """
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _of_fields(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _of_items(old, new, path)
    else:
        yield {"op": "replace", "path": path, "value": new}


def _of_fields(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Operation]:
    for key in [*old, *(key for key in new if key not in old)]:
        place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in new:
            yield {"op": "remove", "path": place}
        elif key not in old:
            yield {"op": "add", "path": place, "value": new[key]}
        else:
            yield from operations(old[key], new[key], place)


def _of_items(old: list[Any], new: list[Any], path: str) -> Iterator[Operation]:
    more = len(new) - len(old)
    if more == 0:
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from operations(before, after, f"{path}/{index}")
    elif more > 0 and new[: len(old)] == old:
        yield from ({"op": "add", "path": f"{path}/-", "value": item} for item in new[len(old) :])
    elif more > 0 and new[more:] == old:
        first = reversed(new[:more])
        yield from ({"op": "add", "path": f"{path}/0", "value": item} for item in first)
    else:
        yield {"op": "replace", "path": path, "value": new}
