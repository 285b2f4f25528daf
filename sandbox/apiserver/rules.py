"""What a resource does to its objects beyond storing them; the rows of `resources` name theirs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sandbox.apiserver.errors import Cause
from sandbox.apiserver.names import DNS_SUBDOMAIN, Syntax
from sandbox.apiserver.store import Object, Store


def _nothing(_: Object) -> None:
    return None


def _admit_all(_: Store, __: Object) -> None:
    return None


def _valid(_: Object) -> Iterator[Cause]:
    return iter(())


def _same(_: Object, __: Object) -> Iterator[Cause]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Hooks in the order in which a write runs them; the first three may change the object."""

    default: Callable[[Object], None] = _nothing
    """Fill in missing fields, at every write."""
    on_create: Callable[[Object], None] = _nothing
    """Set what only the server decides, when the object is created."""
    admit: Callable[[Store, Object], None] = _admit_all
    """Refuse or complete a new object in view of others; raises StatusError."""
    validate: Callable[[Object], Iterator[Cause]] = _valid
    """Yield the fields that are wrong, at every write."""
    validate_update: Callable[[Object, Object], Iterator[Cause]] = _same
    """Yield the fields of the new object (first) that may not differ from the old one."""
    name_syntax: Syntax = DNS_SUBDOMAIN
    shape: Callable[[bytes], None] | None = None
    """Decodes the object as its readers will; raises msgspec.DecodeError if a type is wrong."""
    returned_when_deleted: bool = False
    """Deleting answers with the object, not with a Status."""
    kept: tuple[str, ...] = ()
    """Fields of the spec that an update leaves alone by leaving them out."""
    status_apart: bool = False
    """Status is written through the status subresource only."""


PLAIN = Rules()
"""No rules but those for all objects."""
