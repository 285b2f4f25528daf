"""The table of resources, and what a URL path means: resource, namespace, name and subresource."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sandbox.apiserver import errors
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


_BUILT_IN = ResourceTable()
_NO_CONTAINERS = "the sandbox runs no containers"
_NOT_IMPLEMENTED = {
    "pods/log": f"{_NO_CONTAINERS}: there are no logs",
    "pods/exec": f"{_NO_CONTAINERS}: there is nothing to run a command in",
    "pods/attach": f"{_NO_CONTAINERS}: there is nothing to attach to",
    "pods/portforward": f"{_NO_CONTAINERS}: there are no ports to forward to",
    "pods/proxy": f"{_NO_CONTAINERS}: there is nothing to connect to",
    "pods/resize": f"{_NO_CONTAINERS} to resize: delete the pod and create it again",
    "services/proxy": f"{_NO_CONTAINERS}: there is nothing to connect to",
    "nodes/proxy": "the sandbox has no kubelets: there is nothing to connect to",
    "serviceaccounts/token": "the sandbox has no authentication: no client needs a token",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request is about."""

    resource: Resource
    namespace: str | None = None
    """None: all namespaces, or the resource has none."""
    name: str = ""
    subresource: str = ""

    def not_found(self) -> errors.StatusError:
        """Return the 404 for this object."""
        return errors.not_found(self.resource.plural, self.name, group=self.resource.group)

    @property
    def space(self) -> str:
        """The namespace as the store keys it."""
        return self.namespace or ""


def parse(path: str, resources: ResourceTable = _BUILT_IN) -> Target:
    """Read a path below /api or /apis.

    Raises:
        StatusError: 404, nothing is served there.
    """
    parts = [part for part in path.split("/") if part]
    if parts[:2] == ["api", "v1"]:
        return _target(resources, "", "v1", parts[2:])
    if parts[:1] == ["apis"] and len(parts) > 3:
        return _target(resources, parts[1], parts[2], parts[3:])
    raise errors.no_such_path()


def _target(resources: ResourceTable, group: str, version: str, rest: list[str]) -> Target:
    namespace: str | None = None
    if rest[:1] == ["namespaces"] and len(rest) > 2 and resources.find(group, version, rest[2]):
        namespace, rest = rest[1], rest[2:]
    if not rest or len(rest) > 3:
        raise errors.no_such_path()
    plural, name, subresource = (*rest, "", "")[:3]
    resource = resources.find(group, version, plural)
    if resource is None or resource.namespaced < (namespace is not None):
        raise errors.no_such_path()
    if name and resource.namespaced and namespace is None:
        raise errors.no_such_path()
    if why := _NOT_IMPLEMENTED.get(f"{plural}/{subresource}") if not group else None:
        raise errors.not_implemented(why)
    if subresource and subresource not in resource.subresources:
        raise errors.no_such_path()
    return Target(resource=resource, namespace=namespace, name=name, subresource=subresource)
