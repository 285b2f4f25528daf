"""The table of resources: the built-in rows, and those that custom resource definitions add."""

from collections.abc import Iterable, Mapping

from sandbox.apiserver.resources.builtin import BUILT_IN
from sandbox.apiserver.resources.resource import Resource


class ResourceTable:
    """Finds the resource that a path or a stored object belongs to."""

    def __init__(self, rows: Iterable[Resource] = BUILT_IN) -> None:
        self._rows = {(row.group, row.version, row.plural): row for row in rows}

    @property
    def rows(self) -> tuple[Resource, ...]:
        """All resources, in the order in which they are listed."""
        return tuple(self._rows.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource at this place, if one is served there."""
        return self._rows.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource whose objects say that they are of this kind."""
        named = (row for row in self._rows.values() if row.kind == kind)
        return next((row for row in named if row.api_version == api_version), None)

    def stored_in(self, storage: str) -> Resource:
        """Return the resource in whose form a collection keeps its objects.

        Raises:
            KeyError: Nothing is served from this collection.
        """
        rows = [row for row in self._rows.values() if row.stored_as == storage]
        if not rows:
            raise KeyError(storage)
        return next((row for row in rows if row.view is None), rows[0])

    def versions(self) -> Mapping[str, list[str]]:
        """Return the served API versions of each group, the preferred one first."""
        served: dict[str, list[str]] = {}
        for row in self._rows.values():
            versions = served.setdefault(row.group, [])
            if row.version not in versions:
                versions.append(row.version)
        return served

    def replace(self, group: str, plural: str, rows: Iterable[Resource]) -> None:
        """Serve these rows, and no others, as the resource *plural* of *group*."""
        kept = {key: row for key, row in self._rows.items() if key[::2] != (group, plural)}
        self._rows = kept | {(row.group, row.version, row.plural): row for row in rows}
