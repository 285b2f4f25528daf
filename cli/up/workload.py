"""What `moorage up` creates: generated nodes and pods, or those of files, made at home here."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.shared.manifests import (
    BUILT_IN_CLASSES,
    Object,
    claims_in,
    is_finished,
    missing_claims,
    missing_classes,
    new_object,
    read_located,
    serve,
)
from moorage.errors import ConfigurationError

DEFAULT_NODES = 3
"""Nodes that are generated if neither an option nor a file has nodes."""

ZONES = 3
"""Generated nodes are spread over this many zones."""

SERVER_SET = ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields")
"""Metadata that the embedded API server sets itself."""

BOUND = "bound pods"

LEFT_OUT = {"Node": "--nodes is given", "Pod": "--pods is given"}
"""Why objects of a file are not taken over, by kind."""

CONTROLLED = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
"""Kinds whose pods the embedded cluster makes, but for those of a dump that has pods."""

NOT_MANAGED = "sandbox.moorage.io/not-managed"
"""The annotation of an object whose pods it does not make."""

NOT_FROM_DUMPS = ("Event", "Lease", "Endpoints", "EndpointSlice", "ControllerRevision", "CSINode")
"""Kinds that a cluster writes about itself: those of another one mean nothing here."""

UNCLAIMED = ("Released", "Failed")
"""Phases of volumes that no pod can use any more."""


@dataclass(slots=True, kw_only=True)
class Workload:
    """What to create.

    Attributes:
        definitions: What must be there before the gateway can watch the kinds that plugins read.
        controlled: Deployments and the like, whose pods the cluster makes.
        notes: What people should know about how it was read.
    """

    namespaces: list[Object] = field(default_factory=list)
    definitions: list[Object] = field(default_factory=list)
    priority_classes: list[Object] = field(default_factory=list)
    further: list[Object] = field(default_factory=list)
    nodes: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    controlled: list[Object] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def before_pods(self) -> Sequence[list[Object]]:
        """What must be there before the pods, without the definitions, in this order."""
        return self.namespaces, self.priority_classes, self.further, self.nodes

    @property
    def pods_in_turn(self) -> Sequence[list[Object]]:
        """The pods, those on nodes first: what they take there is known before others are placed.

        Of a pod that is resized this comes with its status, after the pod itself.
        """
        placed, waiting = list[Object](), list[Object]()
        for pod in self.pods:
            (placed if (pod.get("spec") or {}).get("nodeName") else waiting).append(pod)
        return placed, waiting

    @property
    def size(self) -> int:
        """How many objects there are, without definitions."""
        return sum(map(len, (*self.before_pods, self.pods, self.controlled)))

    @property
    def made_pods(self) -> int:
        """How many pods the cluster will make, as far as their number is known beforehand."""
        return sum(map(_made, self.controlled))


def read_workload(nodes: str | None, pods: str | None, profiles: Sequence[str]) -> Workload:
    """Read or generate nodes and pods.

    A file given for one kind brings the other kind too, unless that has an option of its own; but
    pods that are bound in the nodes' file come with their nodes in any case.

    Args:
        nodes: How many to generate, a file, or None.
        pods: How many to generate, a file, or None.
        profiles: The schedulerNames that are served; the first is given to pods that name none.

    Raises:
        ConfigurationError: A file cannot be read, or holds something else.
    """
    workload = Workload()
    for file in dict.fromkeys(text for text in (nodes, pods) if text and not text.isdecimal()):
        taken = {kind for kind, given in (("Node", nodes), ("Pod", pods)) if given in (None, file)}
        try:
            _take(workload, file, taken | ({BOUND} if file == nodes else set()))
        except ConfigurationError as error:
            if Path(file).exists():
                raise
            raise ConfigurationError(f"{error}; give a number or a file") from error
    if nodes is None and not workload.nodes:
        nodes = str(DEFAULT_NODES)
    workload.nodes += [_node(i) for i in range(_count(nodes))]
    workload.pods += [_pod(i) for i in range(_count(pods))]
    _adopt(workload, profiles)
    workload.notes += _homeless(workload)
    workload.notes += missing_claims(workload.pods, claims_in(workload.further))
    return workload


def _count(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _take(workload: Workload, file: str, taken: Collection[str]) -> None:
    """Take over what is in a file: nodes, pods and bound pods only if they are *taken*."""
    left: Counter[str] = Counter()
    found = [obj for _, obj in read_located(Path(file))]
    has_pods = "Pod" not in taken or bool(workload.pods) or any(o["kind"] == "Pod" for o in found)
    for obj in found:
        kind, metadata = obj["kind"], obj["metadata"]
        dumped = bool(metadata.get("uid"))
        for field_name in SERVER_SET:
            metadata.pop(field_name, None)
        if dumped and kind in CONTROLLED and (has_pods or _makes_none(obj)):  # plugins read them
            metadata["annotations"] = {**(metadata.get("annotations") or {}), NOT_MANAGED: ""}
            workload.further.append(obj)
        elif (dumped and kind in NOT_FROM_DUMPS) or not _take_one(workload, obj, taken, file):
            left[kind] += 1
    workload.notes += [
        f"{file}: {count} of kind {kind} left out: {LEFT_OUT.get(kind, 'of the cluster it was in')}"
        for kind, count in left.items()
    ]


def _makes_none(obj: Object) -> bool:
    """Whether an object makes no pods itself: it is done, or another one makes it again."""
    is_done = bool((obj.get("status") or {}).get("completionTime"))
    return is_done or bool(obj["metadata"].get("ownerReferences"))


def _take_one(workload: Workload, obj: Object, taken: Collection[str], file: str) -> bool:
    match obj["kind"]:
        case "Namespace":
            workload.namespaces.append(obj)
        case "PriorityClass":
            if not obj["metadata"].get("name", "").startswith(BUILT_IN_CLASSES):
                workload.priority_classes.append(obj)
        case "CustomResourceDefinition":
            workload.definitions.append(obj)
        case kind if kind in CONTROLLED:
            if "Pod" not in taken:
                return False
            _require_template(obj, file)
            workload.controlled.append(obj)
        case "Pod":
            return _take_pod(workload, obj, taken, file)
        case "Node":
            if "Node" not in taken:
                return False
            workload.nodes.append(obj)
        case _:
            if (obj.get("status") or {}).get("phase") not in UNCLAIMED:
                workload.further.append(obj)
    return True


def _take_pod(workload: Workload, pod: Object, taken: Collection[str], file: str) -> bool:
    if not isinstance(pod.get("spec"), dict):
        raise ConfigurationError(f"{file}: pod {pod['metadata'].get('name')} has no spec")
    bound = bool(pod["spec"].get("nodeName"))
    if not ("Pod" in taken or (BOUND in taken and bound)):
        return False
    if not is_finished(pod):
        workload.pods.append(pod)
    return True  # a finished pod takes no room: not worth a word


def _require_template(obj: Object, file: str) -> None:
    spec: Any = obj
    for key in ("spec", "template", "spec"):
        spec = spec.get(key) if isinstance(spec, dict) else None
    if not isinstance(spec, dict):
        name = obj["metadata"].get("name")
        raise ConfigurationError(f"{file}: {obj['kind']} {name} has no spec.template.spec")


def _adopt(workload: Workload, profiles: Sequence[str]) -> None:
    """Make pods that were written for another cluster at home in this one."""
    for obj in (*workload.pods, *workload.controlled):
        obj["metadata"].setdefault("namespace", "default")
    known = _names(workload.namespaces)
    used = [obj["metadata"] for obj in (*workload.further, *workload.pods, *workload.controlled)]
    for name in dict.fromkeys(each.get("namespace") for each in used):
        if name and name not in known:
            workload.namespaces.append(new_object("v1", "Namespace", name))
    specs = [pod["spec"] for pod in workload.pods]
    specs += [obj["spec"]["template"]["spec"] for obj in workload.controlled]
    workload.priority_classes += missing_classes(specs, _names(workload.priority_classes))
    workload.notes += serve(specs, profiles)


def _names(objects: Sequence[Object]) -> set[str]:
    return {each["metadata"].get("name", "") for each in objects}


def _made(obj: Object) -> int:
    spec = obj["spec"]
    if obj["kind"] != "Job":
        return int(spec.get("replicas", 1))
    completions = spec.get("completions", spec.get("parallelism", 1))
    return 0 if spec.get("suspend") else min(completions, spec.get("parallelism", 1))


def _homeless(workload: Workload) -> Iterator[str]:
    names = _names(workload.nodes)
    places = [pod["spec"].get("nodeName") for pod in workload.pods]
    if count := sum(bool(place) and place not in names for place in places):
        yield f"pods that are bound to nodes that are not here: {count}"


def _node(index: int) -> Object:
    amounts = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    name = f"node-{index:04}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{index % ZONES + 1}",
    }
    ready = {"type": "Ready", "status": "True"}
    return {
        **new_object("v1", "Node", name),
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def _pod(index: int) -> Object:
    requests = {"cpu": "100m", "memory": "128Mi"}
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": requests}}
    return {**new_object("v1", "Pod", f"pod-{index:04}"), "spec": {"containers": [container]}}
