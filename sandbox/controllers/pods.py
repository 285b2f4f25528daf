"""Pods made from templates, and what controllers ask about pods."""

import zlib
from datetime import datetime
from typing import Any

import msgspec

from sandbox.apiserver.kinds.names import SUFFIX_LETTERS
from sandbox.apiserver.resources.resource import Object

REVISION = "controller-revision-hash"
"""The label of a pod with the template that it was made from."""


def template_hash(template: Object) -> str:
    """Return a short text that differs for different templates: digits written as letters."""
    digits = str(zlib.crc32(msgspec.json.encode(template, order="sorted")))
    return "".join(SUFFIX_LETTERS[ord(digit) % len(SUFFIX_LETTERS)] for digit in digits)


def owner_reference(owner: Object) -> Object:
    """Return the reference that makes *owner* the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_of(owner: Object, *, labels: Object | None = None, **name: str) -> Object:
    """Return a pod made from the template of *owner*, with a name or a generateName."""
    template = owner["spec"]["template"]
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "labels": {**given.get("labels", {}), **(labels or {})},
        "annotations": dict(given.get("annotations", {})),
        "finalizers": list(given.get("finalizers", ())),
        "ownerReferences": [owner_reference(owner)],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": name | metadata,
        "spec": dict(template.get("spec") or {}),
    }


def revision_of(pod: Object) -> str:
    """Return the template that the pod was made from, empty if no label says so."""
    return str(pod["metadata"].get("labels", {}).get(REVISION, ""))


def phase(pod: Object) -> str:
    """Return the pod's phase."""
    return str(pod.get("status", {}).get("phase", "Pending"))


def is_active(pod: Object) -> bool:
    """Whether the pod has not ended."""
    return phase(pod) not in ("Succeeded", "Failed")


def is_ready(pod: Object) -> bool:
    """Whether the pod is ready."""
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod.get("status", {}).get("conditions", ())
    )


def worth(pod: Object) -> tuple[bool, bool, float]:
    """Return a key that sorts the pods first that can go most easily: unplaced, unready, young."""
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return bool(pod["spec"].get("nodeName")), is_ready(pod), -created.timestamp()
