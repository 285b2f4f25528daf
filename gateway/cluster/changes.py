"""Changes of the cluster state: the log of the newest, and what replicas are sent of them."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moorage.models import ObjectName, Pod

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a replica needs to reach a generation.

    Attributes:
        generation: The generation that it reaches.
        nodes: New and changed nodes: row and JSON.
        removed_rows: Rows without a node.
        pods: New, changed and moved pods: row of the node, and the pod.
        removed_pods: UIDs of pods that are on no node.
        objects: New and changed objects of further kinds, as JSON.
        removed_objects: Those that are gone.
        partial: Whether more must come until that generation is reached.
    """

    generation: int
    nodes: Sequence[tuple[int, bytes]] = ()
    removed_rows: Sequence[int] = ()
    pods: Sequence[tuple[int, Pod]] = ()
    removed_pods: Sequence[str] = ()
    objects: Sequence[tuple[ObjectName, bytes]] = ()
    removed_objects: Sequence[ObjectName] = ()
    partial: bool = False
