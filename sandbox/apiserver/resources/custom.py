"""Reads custom resource definitions: the resources that one adds, and what is wrong with one.

The types of the fields were checked when the definition was written (`schemas`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.apiserver.errors import Cause, invalid_value, unsupported_value
from sandbox.apiserver.printing import columns_of
from sandbox.apiserver.resources.resource import Object, Resource, View
from sandbox.apiserver.resources.table import BUILT_IN
from sandbox.apiserver.schemas import METADATA

DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"
"""The collection that holds the definitions."""


def served_resources(definition: Object) -> list[Resource]:
    """Return one resource for each served version, the newest first."""
    spec = definition["spec"]
    served = [version for version in spec["versions"] if version["served"]]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    return [_resource(spec, each, stored) for each in sorted(served, key=_age)]


def _resource(spec: Object, version: Object, stored: str) -> Resource:
    group, names, name = spec["group"], spec["names"], version["name"]
    return Resource(
        group=group,
        version=name,
        plural=names["plural"],
        kind=names["kind"],
        singular=names["singular"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        subresources=("status",) if "status" in version.get("subresources", {}) else (),
        selectable={
            each["jsonPath"].removeprefix("."): "" for each in version.get("selectableFields", ())
        },
        columns=columns_of(version.get("additionalPrinterColumns", ())),
        schema=_schema(version.get("schema", {}).get("openAPIV3Schema", {})),
        view=None if name == stored else _other_version(group, name, stored),
    )


def _schema(own: Object) -> Object:
    """Return the schema with the fields that every object has; empty if there is none."""
    text = {"type": "string"}
    every = {"apiVersion": text, "kind": text, "metadata": METADATA}
    properties = own.get("properties", {}) | every
    return {**own, "type": "object", "properties": properties} if own else {}


def _other_version(group: str, version: str, stored: str) -> View:
    """Convert by changing apiVersion only: the conversion strategy None."""
    return View(
        show=lambda obj: obj | {"apiVersion": f"{group}/{version}"},
        store=lambda obj: obj | {"apiVersion": f"{group}/{stored}"},
    )


def _age(version: Object) -> tuple[int, int, int, str]:
    """Order as Kubernetes: v2, v1, v1beta1, v1alpha1, then other names."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version["name"])
    if match is None:
        return 3, 0, 0, version["name"]
    major, stage, minor = match.groups()
    return ("", "beta", "alpha").index(stage or ""), -int(major), -int(minor or 0), ""


def check(definition: Object) -> Iterator[Cause]:
    """Yield what is wrong with a definition."""
    spec = definition["spec"]
    group, plural, scope = spec["group"], spec["names"]["plural"], spec["scope"]
    name = definition["metadata"].get("name", "")
    if name != f"{plural}.{group}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if any((row.group, row.plural) == (group, plural) for row in BUILT_IN):
        yield invalid_value("spec.names.plural", plural, "is served by the API server itself")
    if "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    if scope not in ("Namespaced", "Cluster"):
        yield unsupported_value("spec.scope", scope, ("Cluster", "Namespaced"))
    if sum(version["storage"] for version in spec["versions"]) != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", "", why)


def default_names(definition: Object) -> None:
    """Fill in the names that follow from others."""
    names = definition["spec"]["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")


def established(definition: Object) -> Mapping[str, Any]:
    """Return the status of a definition whose objects are served."""
    spec = definition["spec"]
    reasons = {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}
    created = definition["metadata"]["creationTimestamp"]
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": created, "reason": reason}
        for kind, reason in reasons.items()
    ]
    return {
        "conditions": conditions,
        "acceptedNames": spec["names"],
        "storedVersions": [version["name"] for version in spec["versions"] if version["storage"]],
    }
