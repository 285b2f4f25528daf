"""Reads custom resource definitions: the resources that one adds, and what is wrong with one.

The types of the fields were checked when the definition was written (`schemas`). What it says about
the fields of its objects is not looked at: they are stored as they come.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.apiserver.errors import Cause, invalid_value, unsupported_value
from sandbox.apiserver.resources.table import BUILT_IN, ApiResource, Object, View

DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions"
"""The collection that holds the definitions."""


def served_resources(definition: Object) -> list[ApiResource]:
    """Return one resource for each served version, that of the storage first."""
    spec = definition["spec"]
    served = [version for version in spec["versions"] if version["served"]]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    served.sort(key=lambda version: version["name"] != stored)
    return [_resource(spec, version, stored) for version in served]


def _resource(spec: Object, version: Object, stored: str) -> ApiResource:
    group, names, name = spec["group"], spec["names"], version["name"]
    converted = View(  # as by the conversion strategy None
        show=lambda obj: obj | {"apiVersion": f"{group}/{name}"},
        store=lambda obj: obj | {"apiVersion": f"{group}/{stored}"},
    )
    return ApiResource(
        group=group,
        version=name,
        plural=names["plural"],
        kind=names["kind"],
        singular=names["singular"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        subresources=("status",) if "status" in version.get("subresources", {}) else (),
        view=None if name == stored else converted,
    )


def check(definition: Object) -> Iterator[Cause]:
    """Yield what is wrong with a definition."""
    spec = definition["spec"]
    group, plural, scope = spec["group"], spec["names"]["plural"], spec["scope"]
    name = definition["metadata"].get("name", "")
    if name != f"{plural}.{group}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if any((row.group, row.plural) == (group, plural) for row in BUILT_IN):
        yield invalid_value("spec.names.plural", plural, "is served by the API server itself")
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
