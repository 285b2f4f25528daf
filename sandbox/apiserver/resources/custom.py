"""Reads custom resource definitions: the resources that one adds, and what is wrong with one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from sandbox.apiserver.resources.resource import Object, PrintedColumn, Resource, View

DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"
"""The collection that holds the definitions."""

_STRINGS: TypeAlias = tuple[str, ...]
_SUBRESOURCES = ("status",)


class Names(msgspec.Struct, rename="camel"):
    """What the objects of a definition are called."""

    plural: str
    kind: str
    singular: str = ""
    list_kind: str = ""
    short_names: _STRINGS = ()
    categories: _STRINGS = ()


class Column(msgspec.Struct, rename="camel"):
    """A column of `kubectl get`."""

    name: str
    type: str
    json_path: str
    priority: int = 0


class Field(msgspec.Struct, rename="camel"):
    """A field that field selectors may name."""

    json_path: str


class Version(msgspec.Struct, rename="camel"):
    """One API version of a definition."""

    name: str
    served: bool
    storage: bool
    schema: dict[str, Any] = {}
    subresources: dict[str, Any] = {}
    additional_printer_columns: Sequence[Column] = ()
    selectable_fields: Sequence[Field] = ()


class Spec(msgspec.Struct):
    """The spec of a definition."""

    group: str
    names: Names
    scope: str
    versions: Sequence[Version]


class Definition(msgspec.Struct):
    """A custom resource definition."""

    spec: Spec


def read_definition(obj: Object) -> Spec:
    """Read a definition that has been checked when it was written."""
    return msgspec.convert(obj, Definition).spec


def served_resources(obj: Object) -> list[Resource]:
    """Return one resource for each served version, the newest first."""
    spec = read_definition(obj)
    served = [version for version in spec.versions if version.served]
    stored = next(version for version in spec.versions if version.storage)
    return [_resource(spec, each, stored.name) for each in sorted(served, key=_age)]


def _resource(spec: Spec, version: Version, stored: str) -> Resource:
    names = spec.names
    return Resource(
        group=spec.group,
        version=version.name,
        plural=names.plural,
        kind=names.kind,
        singular=names.singular or names.kind.lower(),
        namespaced=spec.scope == "Namespaced",
        short_names=names.short_names,
        categories=names.categories,
        subresources=tuple(name for name in _SUBRESOURCES if name in version.subresources),
        selectable={field.json_path.removeprefix("."): "" for field in version.selectable_fields},
        columns=tuple(_column(column) for column in version.additional_printer_columns),
        schema=version.schema.get("openAPIV3Schema", {}),
        view=None if version.name == stored else _other_version(spec.group, version.name, stored),
    )


def _column(column: Column) -> PrintedColumn:
    path = column.json_path.removeprefix(".")
    return PrintedColumn(name=column.name, path=path, type=column.type, wide=column.priority > 0)


def _other_version(group: str, version: str, stored: str) -> View:
    """Convert by changing apiVersion only: the conversion strategy None."""
    return View(
        show=lambda obj: obj | {"apiVersion": f"{group}/{version}"},
        store=lambda obj: obj | {"apiVersion": f"{group}/{stored}"},
    )


def _age(version: Version) -> tuple[int, int, int, str]:
    """Order as Kubernetes: v2, v1, v1beta1, v1alpha1, then other names."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version.name)
    if match is None:
        return 3, 0, 0, version.name
    major, stage, minor = match.groups()
    return ("", "beta", "alpha").index(stage or ""), -int(major), -int(minor or 0), ""


def problems(obj: Object) -> Iterator[tuple[str, str]]:
    """Yield the path of each field that is wrong, and why."""
    spec = read_definition(obj)
    name = obj["metadata"].get("name", "")
    if name != f"{spec.names.plural}.{spec.group}":
        yield "metadata.name", f'"{name}": must be spec.names.plural+"."+spec.group'
    if "." not in spec.group:
        yield "spec.group", f'"{spec.group}": should be a domain with at least one dot'
    if spec.scope not in ("Namespaced", "Cluster"):
        yield "spec.scope", f'"{spec.scope}": supported values: "Cluster", "Namespaced"'
    if sum(version.storage for version in spec.versions) != 1:
        yield "spec.versions", "must have exactly one version marked as storage version"


def established(obj: Object) -> Mapping[str, Any]:
    """Return the status of a definition whose objects are served."""
    spec, created = read_definition(obj), obj["metadata"]["creationTimestamp"]
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": created, "reason": reason,
         "message": message}
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]  # fmt: skip
    return {
        "conditions": conditions,
        "acceptedNames": obj["spec"]["names"],
        "storedVersions": [version.name for version in spec.versions if version.storage],
    }
