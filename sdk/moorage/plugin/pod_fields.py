"""The fields of a pod's signature, by their JSON paths, as in `fieldPath` of the downward API.

Plugins name those that they read (`Plugin.pod_fields`); by these the gateway finds
which pods are equal for them, and `assert_node_local` changes all others. `[*]` stands for each
item of a list: "spec.containers[*].image".
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec.structs import replace

from moorage.errors import suggestion
from moorage.models import Metadata, Pod, PodSpec

_EACH: Final = "*"

Names = tuple[str, ...]
"""The attributes that lead to a field, with `_EACH` for the items of a list."""

_Tree = dict[str, "_Tree"]
"""Fields by the attributes that lead to them; nothing below one means all of it."""


def _fields(kind: Any, path: str, names: Names) -> Iterator[tuple[str, Names]]:
    """Yield all that is inside of a value of this kind."""
    models = [each for each in (kind, *get_args(kind)) if _is_model(each)]
    if get_origin(kind) is tuple:
        path, names = f"{path}[*]", (*names, _EACH)
    for field in msgspec.structs.fields(models[0]) if models else ():
        inner, below = f"{path}.{field.encode_name}", (*names, field.name)
        yield inner, below
        yield from _fields(field.type, inner, below)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _known() -> Iterator[tuple[str, Names]]:
    for path, names in _fields(Metadata, "metadata", ("metadata",)):
        # The others are a pod's own.
        if names[1] in ("namespace", "labels", "annotations", "owner_references"):
            yield path, names
    yield "spec", ("spec",)
    yield from _fields(PodSpec, "spec", ("spec",))


FIELDS: Final[Mapping[str, Names]] = dict(_known())
"""All fields that can be named, with the attributes that lead to them."""

SIGNATURE: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.namespace",
    "metadata.ownerReferences",
    "spec",
)
"""All that plugins can see of a pod but for what is its own: name, uid, status and times."""

REQUEST_FIELDS: Final = (
    "spec.containers[*].resources.requests",
    "spec.initContainers[*].resources.requests",
    "spec.initContainers[*].restartPolicy",
    "spec.overhead",
    "spec.resources.requests",
)
"""What `Pod.requests` and `Pod.nonzero_requests` read."""

PORT_FIELDS: Final = (
    "spec.containers[*].ports",
    "spec.initContainers[*].ports",
    "spec.initContainers[*].restartPolicy",
)
"""What `Pod.host_ports` reads."""

DISK_FIELDS: Final = (
    "spec.volumes[*].awsElasticBlockStore",
    "spec.volumes[*].gcePersistentDisk",
    "spec.volumes[*].iscsi",
    "spec.volumes[*].rbd",
)
"""What `Pod.disks` reads."""


def problem_of_fields(paths: object) -> str:
    """Return why paths are no fields of a signature, with the nearest that is; "" if they are."""
    if paths is None:
        return ""
    if not isinstance(paths, tuple) or not all(isinstance(path, str) for path in paths):
        return f"must be None or a tuple of paths, not {paths!r}"
    for path in paths:
        if path not in FIELDS:
            near = suggestion(path, FIELDS)
            return f"has {path!r}, which is no field of a pod's signature{near}"
    return ""


def union(several: Iterable[Sequence[str] | None]) -> tuple[str, ...]:
    """Return the fields that are in some of *several*, in order, without those inside others.

    None is the whole signature, and so is what has an unknown field, from a newer version perhaps.
    """
    paths: set[str] = set()
    for some in several:
        paths.update(some if some is not None and FIELDS.keys() >= set(some) else SIGNATURE)
    return tuple(sorted(path for path in paths if not any(_holds(p, path) for p in paths)))


def reader(path: str) -> Callable[[Pod], object]:
    """Return what reads a field of pods; None where a part around it is missing."""
    if path == "metadata.namespace":
        return lambda pod: pod.namespace
    names = FIELDS[path]
    if len(names) == 2:  # metadata and spec are never missing
        return attrgetter(".".join(names))
    return partial(_read, names=names)


def alike(pod: Pod, other: Pod, paths: Iterable[str]) -> Pod:
    """Return *other* with these fields of *pod*, and its profile, so that all of them read alike.

    Lists some part of whose items is named get as many items as in *pod*.
    """
    tree: _Tree = {}
    for path in union([(*paths, "spec.schedulerName")]):
        below = tree
        for name in FIELDS[path]:
            below = below.setdefault(name, {})
    mixed: Pod = _mixed(pod, other, tree)
    return mixed


def _holds(outer: str, inner: str) -> bool:
    return inner.startswith((f"{outer}.", f"{outer}["))


def _read(value: Any, names: Names) -> object:
    for index, name in enumerate(names):
        if value is None:
            return None
        if name == _EACH:
            rest = names[index + 1 :]
            return [_read(item, rest) for item in value]
        value = getattr(value, name)
    return value


def _mixed(own: Any, other: Any, tree: _Tree) -> Any:
    """Return *other* with the parts of *own* that are in the tree."""
    if not tree:
        return own
    if _EACH in tree:
        others = (*other, *(type(item)() for item in own[len(other) :]))
        pairs = zip(own, others[: len(own)], strict=True)
        return tuple(_mixed(item, each, tree[_EACH]) for item, each in pairs)
    if own is None:
        if other is None or any(getattr(type(other)(), name) is not None for name in tree):
            return None  # there would be something to read
        return replace(other, **dict.fromkeys(tree))
    base = type(own)() if other is None else other
    parts = {n: _mixed(getattr(own, n), getattr(base, n), below) for n, below in tree.items()}
    return replace(base, **parts)
