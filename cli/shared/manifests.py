"""Reads Kubernetes objects from files: manifests, or what `kubectl get ... -o json|yaml` prints.

And makes pods that were written for another cluster at home here.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from moorage.errors import ConfigurationError
from moorage.files import MAX_FILE, load_all

Object = dict[str, Any]

CLAIM_KINDS = ("PersistentVolumeClaim", "ResourceClaim", "ResourceClaimTemplate")

BUILT_IN_CLASSES = "system-"
"""The priority classes that every API server has, and nobody may create."""


def key_of(obj: Object) -> str:
    """Return the name of an object in a namespace as NAMESPACE/NAME."""
    metadata = obj["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"


def is_finished(pod: Object) -> bool:
    """Whether all containers of a pod have ended; it takes no room on its node any more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def read_located(path: Path) -> Iterator[tuple[str, Object]]:
    """Yield the objects in a file, those in lists one by one, each with its place for messages.

    Each has a kind, and metadata with a name or a generateName.

    Raises:
        ConfigurationError: The file cannot be read, has something else in it, or an object twice;
            the message names the place.
    """
    seen: set[tuple[str, str, str]] = set()
    for where, obj in _located(path):
        group = str(obj.get("apiVersion", "")).partition("/")[0]
        key = group, obj["kind"], key_of(obj)
        if obj["metadata"].get("name") and key in seen:
            raise ConfigurationError(f"{where}: {obj['kind']} {key[2]} is there twice")
        seen.add(key)
        yield where, obj


def _located(path: Path) -> Iterator[tuple[str, Object]]:
    for index, document in enumerate(load_all(path, longest=MAX_FILE)):
        where = f"{path}: document {index + 1}"
        if document is None:
            continue
        kind = document.get("kind") if isinstance(document, dict) else None
        if not isinstance(kind, str):
            raise ConfigurationError(f"{where} is no Kubernetes object: it has no kind")
        if not kind.endswith("List"):
            yield where, _checked(document, where)
            continue
        items = document.get("items") or []
        if not isinstance(items, list | Iterator):
            raise ConfigurationError(f"{where}: items is no list")
        # The items of a PodList, as the API itself writes it, do not repeat what they are.
        default = {"kind": kind.removesuffix("List")} if kind != "List" else {}
        if default and document.get("apiVersion"):
            default["apiVersion"] = document["apiVersion"]
        for number, item in enumerate(items):
            inner = f"{where}: items[{number}]"
            whole = {**default, **item} if isinstance(item, dict) else item
            yield inner, _checked(whole, inner)


def _checked(obj: Any, where: str) -> Object:
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        raise ConfigurationError(f"{where} is no Kubernetes object: it has no kind")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise ConfigurationError(f"{where}: the {obj['kind']} has no metadata")
    if not isinstance(obj.get("apiVersion", ""), str):
        raise ConfigurationError(f"{where}: apiVersion of the {obj['kind']} must be text")
    if not all(isinstance(metadata.get(k, ""), str) for k in ("name", "namespace")):
        raise ConfigurationError(f"{where}: name and namespace of the {obj['kind']} must be text")
    if not metadata.get("name") and not metadata.get("generateName"):
        raise ConfigurationError(f"{where}: the {obj['kind']} has no name")
    return obj


def without_nulls(value: Any) -> Any:
    """Return an object without fields that are null, which Go takes for absent ones."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def serve(specs: Iterable[Object], profiles: Sequence[str]) -> list[str]:
    """Have pods of schedulers that are not here scheduled by the first profile; return notes.

    Args:
        specs: The specs of pods, which are changed.
        profiles: The schedulerNames that are served.
    """
    renamed: Counter[str] = Counter()
    for spec in specs:
        wanted = spec.get("schedulerName") or "default-scheduler"
        if not spec.get("nodeName") and wanted not in profiles:
            spec["schedulerName"] = profiles[0]
            renamed[wanted] += 1
    return [
        f"pods of schedulerName {name} are scheduled as {profiles[0]} here: {count}"
        for name, count in renamed.items()
    ]


def missing_classes(specs: Iterable[Object], known: Collection[str]) -> list[Object]:
    """Return the PriorityClasses that only pods name, with the values that these pods have."""
    made: dict[str, Object] = {}
    for spec in specs:
        name = spec.get("priorityClassName") or ""
        if name and name not in known and not name.startswith(BUILT_IN_CLASSES):
            policy = {key: spec[key] for key in ("preemptionPolicy",) if spec.get(key)}
            named = new_object("scheduling.k8s.io/v1", "PriorityClass", name)
            made.setdefault(name, {**named, "value": spec.get("priority") or 0, **policy})
    return list(made.values())


def claims_in(objects: Iterable[Object]) -> set[str]:
    """Return the claims on volumes and devices among objects, as KIND NAMESPACE/NAME."""
    return {f"{each['kind']} {key_of(each)}" for each in objects if each["kind"] in CLAIM_KINDS}


def missing_claims(pods: Iterable[Object], known: Collection[str]) -> Iterator[str]:
    """Yield a note if pods without a node use claims that are not known: nothing looks at them."""
    missing = []
    for pod in pods:
        spec, namespace = pod["spec"], pod["metadata"].get("namespace") or "default"
        volumes = (each.get("persistentVolumeClaim") for each in _objects(spec, "volumes"))
        names = [
            ("PersistentVolumeClaim", each.get("claimName"))
            for each in volumes
            if isinstance(each, dict)
        ]
        statuses = _objects(pod.get("status") or {}, "resourceClaimStatuses")
        made = {each.get("name"): each.get("resourceClaimName") for each in statuses}
        for each in _objects(spec, "resourceClaims"):
            name = each.get("resourceClaimName") or made.get(each.get("name"))
            template = each.get("resourceClaimTemplateName")
            names.append(("ResourceClaim", name) if name else ("ResourceClaimTemplate", template))
        unknown = (f"{kind} {namespace}/{name}" for kind, name in names)
        claim = next((each for each in unknown if each not in known), None)
        if claim and not spec.get("nodeName"):
            missing.append(f"{key_of(pod)} ({claim})")
    if missing:
        yield (
            f"pods that use claims which are not in the files: {len(missing)}, such as "
            f"{missing[0]}; they are placed as if the claims existed, without which "
            "kube-scheduler leaves them pending"
        )


def _objects(parent: Object, field: str) -> list[Object]:
    """Return the objects of a list; the API server reports what else is there."""
    found = parent.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def new_object(api_version: str, kind: str, name: str) -> Object:
    """Return an object that has nothing but its name."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
