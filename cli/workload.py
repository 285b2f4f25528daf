"""Reads nodes and pods from what people have: manifests, or a dump of a real cluster."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from moorage.errors import ConfigurationError

Object = dict[str, Any]

ZONES = 3
"""Generated nodes are spread over this many zones."""

SERVER_SET = ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields")
"""Metadata that the embedded API server sets anew."""


@dataclass(slots=True, kw_only=True)
class Workload:
    """What to create, in this order.

    Attributes:
        notes: What people should know about how it was read.
    """

    namespaces: list[Object] = field(default_factory=list)
    priority_classes: list[Object] = field(default_factory=list)
    nodes: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def unbound(self) -> list[Object]:
        """The pods that are to be scheduled."""
        return [pod for pod in self.pods if not pod["spec"].get("nodeName")]


def read_workload(nodes: str, pods: str, profiles: Sequence[str]) -> Workload:
    """Read or generate nodes and pods.

    Args:
        nodes: How many to generate, or a file.
        pods: How many to generate, or a file.
        profiles: The schedulerNames that are served; the first is given to pods that name none.

    Raises:
        ConfigurationError: A file cannot be read, or holds something else.
    """
    workload = Workload()
    sources = dict.fromkeys([*([] if _is_count(nodes) else [nodes])])
    for name, generate, count in (("nodes", _node, nodes), ("pods", _pod, pods)):
        if _is_count(count):
            getattr(workload, name).extend(generate(i) for i in range(int(count)))
    if not _is_count(pods):
        sources[pods] = None
    for source in sources:
        for obj in _objects(Path(source)):
            _add(workload, obj, source)
    _adopt(workload, profiles)
    return workload


def _is_count(text: str) -> bool:
    return text.isdecimal()


def _node(index: int) -> Object:
    amounts = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    name = f"node-{index:04}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{index % ZONES + 1}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(index: int) -> Object:
    requests = {"cpu": "100m", "memory": "128Mi"}
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{index:04}", "namespace": "default"},
        "spec": {"containers": [container]},
    }


def _objects(path: Path) -> Iterator[Object]:
    try:
        text = path.read_text()
        documents = [json.loads(text)] if path.suffix == ".json" else _yaml_documents(text)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path} is neither YAML nor JSON: {error}") from error
    for index, document in enumerate(documents):
        if document is None:
            continue
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise ConfigurationError(f"{path}: document {index + 1} is no Kubernetes object")
        yield from document.get("items") or () if document["kind"].endswith("List") else (document,)


def _yaml_documents(text: str) -> list[Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return list(yaml.load_all(text, loader))


def _add(workload: Workload, obj: Object, source: str) -> None:
    kind, name = obj.get("kind"), (obj.get("metadata") or {}).get("name")
    metadata = obj.setdefault("metadata", {})
    for key in SERVER_SET:
        metadata.pop(key, None)
    match kind:
        case "Node":
            workload.nodes.append(obj)
        case "Pod":
            if not isinstance(obj.get("spec"), dict):
                raise ConfigurationError(f"{source}: pod {name} has no spec")
            if (obj.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                workload.pods.append(obj)
        case "Namespace":
            workload.namespaces.append(obj)
        case "PriorityClass":
            workload.priority_classes.append(obj)
        case _:
            workload.notes.append(f"{source}: {kind} {name} is left out: only nodes and pods count")


def _adopt(workload: Workload, profiles: Sequence[str]) -> None:
    """Make pods that were written for another cluster at home in this one."""
    names = {obj["metadata"]["name"] for obj in workload.namespaces} | {"default", "kube-system"}
    classes = {obj["metadata"]["name"] for obj in workload.priority_classes}
    renamed: dict[str, int] = {}
    for pod in workload.pods:
        namespace = pod["metadata"].setdefault("namespace", "default")
        if namespace not in names:
            names.add(namespace)
            workload.namespaces.append(_named("v1", "Namespace", namespace))
        spec = pod["spec"]
        wanted = spec.get("priorityClassName", "")
        if wanted and wanted not in classes and not wanted.startswith("system-"):
            classes.add(wanted)
            made = _named("scheduling.k8s.io/v1", "PriorityClass", wanted)
            workload.priority_classes.append({**made, "value": spec.get("priority", 0)})
        scheduler = spec.get("schedulerName", "default-scheduler")
        if not spec.get("nodeName") and scheduler not in profiles:
            spec["schedulerName"] = profiles[0]
            renamed[scheduler] = renamed.get(scheduler, 0) + 1
    for scheduler, count in renamed.items():
        workload.notes.append(
            f"{count} pods of schedulerName {scheduler} are scheduled as {profiles[0]} here"
        )


def _named(api_version: str, kind: str, name: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
