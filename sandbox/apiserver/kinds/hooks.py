"""The hooks of a kind: what happens to its objects beyond storing them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from sandbox.apiserver.errors import Cause
from sandbox.apiserver.kinds.names import DNS_SUBDOMAIN, Syntax
from sandbox.apiserver.resources.resource import Object


class Reader(Protocol):
    """The stored objects, as admission reads them."""

    def find(self, storage: str, namespace: str, name: str) -> Object | None:
        """Return an object."""

    def objects(self, storage: str) -> list[Object]:
        """Return all objects of a collection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Hooks in the order in which a write runs them; the first four may change the object."""

    default: Callable[[Object], None] = lambda _: None
    """Fill in missing fields, at every write."""
    on_create: Callable[[Object], None] = lambda _: None
    """Set what only the server decides, when the object is created."""
    on_update: Callable[[Object, Object], None] = lambda new, old: None
    """Take over what an update of the new object (first) leaves out of the old one."""
    admit: Callable[[Reader, Object], None] = lambda store, obj: None
    """Refuse or complete a new object in view of others; raises StatusError."""
    validate: Callable[[Object], Iterable[Cause]] = lambda _: ()
    """Yield the fields that are wrong, at every write."""
    validate_update: Callable[[Object, Object], Iterable[Cause]] = lambda new, old: ()
    """Yield the fields of the new object (first) that may not differ from the old one."""
    name_syntax: Syntax = DNS_SUBDOMAIN
    keeps_status: bool = False
    """A new object keeps the status that the client sent."""
    returned_when_deleted: bool = False
    """Deleting answers with the object, not with a Status."""
