"""The newest changes of the cluster state, by generation: what replicas that follow it are sent."""

from collections import deque
from typing import NamedTuple

from moorage.models import ObjectName

Key = int | str | ObjectName
"""A row, the UID of a pod, or the name of an object of a further kind."""


class ChangedKeys(NamedTuple):
    """What has changed, each once."""

    rows: list[int]
    uids: list[str]
    objects: list[ObjectName]


class ChangeLog:
    """Which keys changed in which generation, up to a limit."""

    def __init__(self, limit: int) -> None:
        """Keep the newest *limit* changes."""
        self._log: deque[tuple[int, Key]] = deque(maxlen=limit)

    def add(self, generation: int, *keys: Key) -> None:
        """Note what changes in a generation, none of which is older than those before."""
        self._log.extend((generation, key) for key in keys)

    def since(self, generation: int) -> ChangedKeys | None:
        """Return what changed after a generation; None if the log does not go back that far."""
        if len(self._log) == self._log.maxlen and self._log[0][0] > generation:
            return None
        rows: dict[int, None] = {}
        uids: dict[str, None] = {}
        names: dict[ObjectName, None] = {}
        for changed, key in reversed(self._log):
            if changed <= generation:
                break
            if isinstance(key, int):
                rows[key] = None
            elif isinstance(key, str):
                uids[key] = None
            else:
                names[key] = None
        return ChangedKeys(list(rows), list(uids), list(names))
