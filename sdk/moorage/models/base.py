"""How every model is laid out: frozen structs, with mappings and lists that cannot be changed.

What plugins see belongs to all of them. Read-only mappings and lists are a dict and a list for
everybody who reads; `dict(...)`, `list(...)`, `copy` and `|` give copies that can be changed.
"""

from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class Model(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """An immutable part of a Kubernetes object.

    Nothing in it can refer back to it, so the garbage collector may ignore it: with 150,000 pods,
    looking for cycles would stop the process for seconds. Models that cache what they derive need
    a `dict` and with it `gc`.
    """


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError(
        "pods, nodes and objects are read-only, because all plugins share them: change a copy, "
        "such as dict(pod.labels)"
    )


class ReadOnlyDict(dict[K, V]):
    """A dict that refuses every change."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (dict(self),))


class ReadOnlyList(list[T]):
    """A list that refuses every change."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (list(self),))


NOTHING: Final[Mapping[str, Any]] = ReadOnlyDict()
"""The default of every mapping: the only empty one, so that encoding knows and leaves it out."""


def read_only(mapping: Mapping[str, T]) -> Mapping[str, T]:
    """Return a read-only mapping with the same content, for values that cannot change."""
    if type(mapping) is ReadOnlyDict:
        return mapping
    return ReadOnlyDict(mapping) if mapping else NOTHING


def read_only_tree(value: Any) -> Any:
    """Return what JSON may hold, with all its mappings and lists read-only."""
    if isinstance(value, dict):
        return ReadOnlyDict({key: read_only_tree(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return ReadOnlyList(map(read_only_tree, value))
    return value


class OwnerReference(Model, frozen=True):
    """The object that created this one."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class Metadata(Model, frozen=True):
    """What every Kubernetes object carries; resource versions are left out, not being content."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Mapping[str, str] = NOTHING
    annotations: Mapping[str, str] = NOTHING
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class Requirement(Model, frozen=True):
    """One condition on a key: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Model, frozen=True):
    """Matches objects by labels. An empty selector matches everything."""

    match_labels: Mapping[str, str] = NOTHING
    match_expressions: tuple[Requirement, ...] = ()
