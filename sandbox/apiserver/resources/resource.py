"""One resource: how it is addressed, and how its objects are stored and selected."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object, decoded from JSON. Stored objects are never changed in place."""

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

SUBRESOURCE_VERBS = {
    "binding": ("create",),
    "eviction": ("create",),
    "status": ("get", "update", "patch"),
    "scale": ("get", "update", "patch"),
    "ephemeralcontainers": ("get", "update", "patch"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A pair of functions between the stored form of an object and that of another API version."""

    show: Callable[[Object], Object]
    store: Callable[[Object], Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of `kubectl get`: its title, and how to fill it at a time."""

    name: str
    cell: Callable[[Object, datetime], Any]
    type: str = "string"
    wide: bool = False
    """Shown with -o wide only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of object under one API version."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    singular: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[str, ...] = ()
    selectable: Mapping[str, str] = field(default_factory=dict)
    """Fields that a field selector may name, in addition to name and namespace: path to default."""
    columns: tuple[Column, ...] = ()
    """What a custom resource definition prints; built-in kinds have theirs in `printing`."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    """The OpenAPI schema of a custom resource."""
    view: View | None = None
    """How objects look in this API version, if they are stored in another one."""
    storage: str = ""
    """The collection that holds the objects, if it is shared with another resource."""

    @property
    def api_version(self) -> str:
        """The value of the objects' apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def stored_as(self) -> str:
        """The name of the collection that holds the objects, by default GROUP/PLURAL."""
        return self.storage or f"{self.group}/{self.plural}"

    @property
    def has_status(self) -> bool:
        """Whether the status is written through a subresource only."""
        return "status" in self.subresources

    @property
    def is_stored(self) -> bool:
        """Whether objects are kept; a Binding is only an order."""
        return "get" in self.verbs


def value_at(obj: Any, path: str) -> Any:
    """Return the value at a path of names with dots between them, None if there is none."""
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj
