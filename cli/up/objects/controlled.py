"""Deployments and the like in files; the cluster makes their pods, unless those come with them."""

from collections.abc import Iterable, Iterator
from typing import Any

from cli.up.objects.manifests import Object
from moorage.errors import ConfigurationError

CONTROLLED = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
"""Kinds whose pods the embedded cluster makes."""

NOT_MANAGED = "sandbox.moorage.io/not-managed"
"""The annotation of an object whose pods it does not make."""


def require_template(obj: Object, file: str) -> None:
    """Check that an object has a template for pods.

    Raises:
        ConfigurationError: It has none.
    """
    spec: Any = obj
    for key in ("spec", "template", "spec"):
        spec = spec.get(key) if isinstance(spec, dict) else None
    if not isinstance(spec, dict):
        name = obj["metadata"].get("name")
        raise ConfigurationError(f"{file}: {obj['kind']} {name} has no spec.template.spec")


def pod_spec(obj: Object) -> Object:
    """Return the spec of the pods that an object makes; it may be changed."""
    spec: Object = obj["spec"]["template"]["spec"]
    return spec


def expected_pods(controlled: Iterable[Object]) -> int:
    """Return how many pods will be made, as far as their number is known beforehand."""
    return sum(map(_count, controlled))


class Owners:
    """What controls the pods of a file."""

    def __init__(self, pods: Iterable[Object]) -> None:
        self._keys = {key for pod in pods for key in _controllers(pod)}

    def keep(self, controlled: Iterable[Object]) -> Iterator[Object]:
        """Yield the objects to create; what its own pods come with makes no others.

        StatefulSets are created in any case, because plugins read them.
        """
        for obj in controlled:
            metadata = obj["metadata"]
            key = (obj["kind"], metadata.get("namespace", "default"), metadata.get("name", ""))
            if next(_controllers(obj), None) or (obj.get("status") or {}).get("completionTime"):
                continue  # its own controller makes it again, or it is done
            if key not in self._keys:
                yield obj
            elif obj["kind"] == "StatefulSet":
                metadata["annotations"] = {**(metadata.get("annotations") or {}), NOT_MANAGED: ""}
                yield obj


def is_managed(obj: Object) -> bool:
    """Whether the embedded cluster makes the object's pods."""
    return NOT_MANAGED not in (obj["metadata"].get("annotations") or {})


def _controllers(obj: Object) -> Iterator[tuple[str, str, str]]:
    metadata = obj["metadata"]
    for reference in metadata.get("ownerReferences") or ():
        kind, name = str(reference.get("kind")), str(reference.get("name"))
        namespace = metadata.get("namespace", "default")
        if reference.get("controller"):
            yield kind, namespace, name
        if reference.get("controller") and kind == "ReplicaSet":
            yield "Deployment", namespace, name.rpartition("-")[0]


def _count(obj: Object) -> int:
    spec = obj["spec"]
    if obj["kind"] != "Job":
        return int(spec.get("replicas", 1))
    completions = spec.get("completions", spec.get("parallelism", 1))
    return 0 if spec.get("suspend") else min(completions, spec.get("parallelism", 1))
