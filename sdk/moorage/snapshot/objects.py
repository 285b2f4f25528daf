"""Objects of additional kinds: those that plugins name in `reads`, as the gateway sent them.

An object is decoded when a plugin first asks for it, and once for each model that plugins want.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from moorage.errors import UnknownNameError
from moorage.models.base import read_only_tree
from moorage.models.decoding import tolerant_decoder
from moorage.models.kinds import ObjectKind, ObjectName

T = TypeVar("T")
R = TypeVar("R")

Key = tuple[str, str]
"""Namespace and name."""


class Objects(Generic[T]):
    """The objects of one kind that a plugin reads, each as one model.

    Plugins share them: plain dicts are read-only.
    """

    def __init__(self, contents: dict[Key, bytes], model: type[T], *, namespace: str = "") -> None:
        self._contents = contents
        self._namespace = namespace
        finish = read_only_tree if model is dict else _as_it_is
        self._decode: Callable[[bytes], T] = tolerant_decoder(model, finish)
        self._decoded: dict[Key, T] = {}
        self._derived: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self._contents)

    def __iter__(self) -> Iterator[T]:
        return (self._read(key) for key in self._contents)

    def get(self, name: str, namespace: str | None = None) -> T | None:
        """Return an object.

        Args:
            name: Its name.
            namespace: Its namespace; by default the one that the kind in `reads` has. Objects of
                cluster-wide kinds have none.

        Raises:
            msgspec.ValidationError: It does not fit the model.
        """
        key = (self._namespace if namespace is None else namespace, name)
        return self._read(key) if key in self._contents else None

    def derived(self, key: Hashable, derive: Callable[["Objects[T]"], R]) -> R:
        """Return what *derive* makes of all objects, called again only when one has changed.

        Args:
            key: Names the result; the same key must always come with the same *derive*.
            derive: Makes an index, for example.
        """
        if key not in self._derived:
            self._derived[key] = derive(self)
        result: R = self._derived[key]
        return result

    def changed(self, key: Key) -> None:
        """Forget what was made of an object that is changed or gone."""
        self._decoded.pop(key, None)
        self._derived.clear()

    def _read(self, key: Key) -> T:
        if key not in self._decoded:
            self._decoded[key] = self._decode(self._contents[key])
        return self._decoded[key]


class ObjectStore:
    """The objects of a snapshot by kind."""

    def __init__(self, kinds: Iterable[ObjectKind] = ()) -> None:
        """Start empty, with *kinds* that can be read."""
        self._contents: dict[ObjectKind, dict[Key, bytes]] = {}
        self._views: dict[ObjectKind, dict[type[Any], Objects[Any]]] = {}
        self.open(kinds)

    def __len__(self) -> int:
        return sum(map(len, self._contents.values()))

    def __contains__(self, name: ObjectName) -> bool:
        return (name.namespace, name.name) in self._contents.get(name.kind, ())

    @property
    def counts(self) -> dict[ObjectKind, int]:
        """How many objects there are of each kind."""
        return {kind: len(contents) for kind, contents in self._contents.items()}

    def open(self, kinds: Iterable[ObjectKind]) -> None:
        """Let objects of additional kinds come; those that are here already stay as they are."""
        for kind in kinds:
            self._contents.setdefault(kind, {})
            self._views.setdefault(kind, {})

    def close(self, kinds: Iterable[ObjectKind]) -> None:
        """Forget kinds with their objects."""
        for kind in kinds:
            self._contents.pop(kind, None)
            self._views.pop(kind, None)

    def select(self, kind: ObjectKind, model: type[T]) -> Objects[T]:
        """Return the objects of a kind.

        Raises:
            UnknownNameError: No plugin names the kind in its `reads`.
        """
        contents = self._contents.get(kind)
        if contents is None:
            here = f"; it has {', '.join(map(str, self._contents))}" if self._contents else ""
            raise UnknownNameError(
                f"{kind} are not here: the plugin must name them in its class attribute `reads`"
                f", with the same namespace and selectors{here}"
            )
        views = self._views[kind]
        if model not in views:
            views[model] = Objects(contents, model, namespace=kind.namespace)
        return views[model]

    def put(self, name: ObjectName, content: bytes) -> None:
        """Take over a new or changed object as JSON.

        Raises:
            KeyError: Its kind is not one of those to be read.
        """
        key = (name.namespace, name.name)
        self._contents[name.kind][key] = content
        self._forget(name.kind, key)

    def remove(self, name: ObjectName) -> None:
        """Forget an object, if it is there."""
        key = (name.namespace, name.name)
        if self._contents.get(name.kind, {}).pop(key, None) is not None:
            self._forget(name.kind, key)

    def _forget(self, kind: ObjectKind, key: Key) -> None:
        for view in self._views[kind].values():
            view.changed(key)


def _as_it_is(value: T) -> T:
    return value
