"""Who owns what by metadata.ownerReferences; `cluster` deletes objects with their last owner."""

from collections import OrderedDict
from typing import TypeAlias

from sandbox.apiserver.resources.resource import Object

Key: TypeAlias = tuple[str, str, str]
"""Collection, namespace and name of an object."""

MOST_DELETED = 8192
"""UIDs of deleted objects that are kept: a controller may still create dependents of theirs."""


class Owners:
    """Which stored objects name which owner."""

    def __init__(self) -> None:
        self._dependents: dict[str, dict[Key, None]] = {}
        self._deleted: OrderedDict[str, None] = OrderedDict()

    def update(self, key: Key, before: Object, after: Object) -> None:
        """Note a change of the metadata of one object; empty where it does not exist."""
        old, new = owner_uids(before), owner_uids(after)
        for uid in old - new:
            dependents = self._dependents[uid]
            del dependents[key]
            if not dependents:
                del self._dependents[uid]
        for uid in new - old:
            self._dependents.setdefault(uid, {})[key] = None
        if not after:
            self._deleted[before.get("uid", "")] = None
            if len(self._deleted) > MOST_DELETED:
                self._deleted.popitem(last=False)

    def dependents(self, uid: str) -> list[Key]:
        """Return the objects that name this owner, in the order in which they did."""
        return list(self._dependents.get(uid, ()))

    def is_orphaned(self, metadata: Object) -> bool:
        """Return whether an object has owners and all of them were deleted."""
        owners = owner_uids(metadata)
        return bool(owners) and owners <= self._deleted.keys()


def owner_uids(metadata: Object) -> set[str]:
    """Return the UIDs of the owners of an object."""
    references = metadata.get("ownerReferences")
    return {reference.get("uid", "") for reference in references} if references else set()
