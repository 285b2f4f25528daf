"""What is given: a dump of a cluster, and the pods to place."""

import copy
import itertools
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from cli.shared.manifests import (
    CLAIM_KINDS,
    Object,
    claims_in,
    is_finished,
    key_of,
    missing_claims,
    missing_classes,
    read_located,
    without_nulls,
)
from moorage.errors import ConfigurationError
from moorage.models import ObjectKind, decode_pod
from moorage.rules import selects_object
from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.kinds import pods as pod_rules
from sandbox.apiserver.kinds.pods import CLASSES, SYSTEM_CLASSES, resolve_priority
from sandbox.apiserver.resources.table import BUILT_IN
from sandbox.apiserver.store.store import Store

HOSTNAME: Final = "kubernetes.io/hostname"

Located = tuple[str, Object]
"""An object, and its place for messages."""

Readers = Mapping[ObjectKind, str]
"""The additional kinds of objects that plugins read, each with the name of such a plugin."""

_PLURALS: Final = {resource.kind: resource.plural for resource in BUILT_IN}


@dataclass(slots=True, kw_only=True)
class ClusterObjects:
    """The objects of a cluster.

    Attributes:
        place: Where they come from.
        classes: The PriorityClasses.
        claims: The claims on volumes and devices, as KIND NAMESPACE/NAME.
        further: What plugins read beside nodes and pods, by kind.
        kinds: The API versions and plurals that there are objects of; pods need not be.
        notes: What people should know about how they were read.
    """

    place: str
    nodes: list[Located] = field(default_factory=list)
    pods: list[Located] = field(default_factory=list)
    classes: list[Object] = field(default_factory=list)
    claims: set[str] = field(default_factory=set)
    further: dict[ObjectKind, list[Object]] = field(default_factory=dict)
    kinds: set[tuple[str, str]] = field(default_factory=lambda: {("v1", "pods")})
    notes: list[str] = field(default_factory=list)


def read_dump(path: Path, readers: Readers) -> ClusterObjects:
    """Read what `kubectl get nodes,pods,priorityclasses -A -o json` or `-o yaml` prints.

    Raises:
        ConfigurationError: It cannot be read, or has no nodes; the message names the place.
    """
    located = list(read_located(path))
    found = ClusterObjects(place=str(path), further={kind: [] for kind in readers})
    found.claims = claims_in(obj for _, obj in located)
    plurals = {**_PLURALS, **dict(_custom(obj for _, obj in located))}
    for where, obj in located:
        match obj["kind"]:
            case "Node":
                found.nodes.append((where, obj))
            case "Pod":
                found.pods.append((where, obj))
            case "PriorityClass":
                found.classes.append(obj)
        plural = plurals.get(obj["kind"]) or f"{obj['kind'].lower()}s"
        found.kinds.add((str(obj.get("apiVersion")), plural))
        for kind in readers:
            if (kind.api_version, kind.plural) == (obj.get("apiVersion"), plural):
                found.further[kind] += [obj] if selects_object(kind, obj) else []
    if not found.nodes:
        raise ConfigurationError(
            f"{path}: there is no node in it: write it with `{_command(readers)}`"
        )
    found.notes += _missing(found, readers)
    return found


def with_more_nodes(cluster: ClusterObjects, count: int) -> ClusterObjects:
    """Return a cluster with so many empty nodes more, and a note that says which.

    They are copies of one of the schedulable nodes with the resources and taints that most have.
    """
    nodes = {str(obj["metadata"]["name"]): obj for _, obj in cluster.nodes}
    usable = [
        name for name, obj in nodes.items() if not (obj.get("spec") or {}).get("unschedulable")
    ]
    usable = usable or list(nodes)
    ((shape, _),) = Counter(_shape(nodes[name]) for name in usable).most_common(1)
    model = next(name for name in usable if _shape(nodes[name]) == shape)
    names = (f"{model}-{number}" for number in itertools.count(1))
    new = list(itertools.islice((name for name in names if name not in nodes), count))
    more = [(f"a copy of node {model}", _named(nodes[model], name)) for name in new]
    note = f"{count} more nodes like {model}: {new[0]}{f' to {new[-1]}' if count > 1 else ''}"
    return replace(cluster, nodes=[*cluster.nodes, *more], notes=[note])


def _shape(node: Object) -> str:
    status, spec = node.get("status") or {}, node.get("spec") or {}
    return str((status.get("allocatable") or status.get("capacity"), spec.get("taints")))


def _named(node: Object, name: str) -> Object:
    """Return a copy of a node with another name; its hostname is the name, as kubelets have it."""
    found = copy.deepcopy(node)
    metadata = found["metadata"] = {**found["metadata"], "name": name, "uid": str(uuid.uuid4())}
    if HOSTNAME in (metadata.get("labels") or {}):
        metadata["labels"] = {**metadata["labels"], HOSTNAME: name}
    return found


def _custom(objects: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Yield kind and plural of the custom resources that a dump defines."""
    for obj in objects:
        if obj["kind"] == "CustomResourceDefinition":
            names = (obj.get("spec") or {}).get("names") or {}
            yield str(names.get("kind")), str(names.get("plural"))


def _missing(found: ClusterObjects, readers: Readers) -> Iterator[str]:
    for kind, plugin in readers.items():
        if (kind.api_version, kind.plural) not in found.kinds and not kind.optional:
            yield (
                f"{plugin} reads {kind}, of which {found.place} has none; a dump with them: "
                f"{_command(readers)}"
            )


def _command(readers: Readers) -> str:
    """Return what dumps a cluster with all that plugins cannot do without."""
    needed = (re.sub(r"\[.*", "", str(kind)) for kind in readers if not kind.optional)
    return f"kubectl get {','.join(dict.fromkeys(('nodes', 'pods', *needed)))} -A -o json"


MIRROR: Final = "kubernetes.io/config.mirror"
"""The annotation of a pod that a kubelet runs from a file of its node; nobody schedules it."""

_UIDS: Final = uuid.UUID("b2f5ff47-4366-4c60-8a6c-3a1f0b3bb3a4")


@contextmanager
def placed_mistakes(where: str) -> Iterator[None]:
    """Have what is wrong with an object reported with its place.

    Raises:
        ConfigurationError: The object is malformed, or an API server would refuse it.
    """
    try:
        yield
    except (msgspec.DecodeError, StatusError, ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(f"{where}: {error}") from error


def read_pods(
    path: Path, count: int | None, cluster: ClusterObjects
) -> tuple[list[Object], list[str]]:
    """Read the pods to place in *cluster*, each *count* times under names of its own if given.

    Their nodes are left out. Pods that ended, that are being deleted or that a kubelet runs from a
    file are not taken.

    Returns:
        The pods as an API server would have them, in order of their arrival, and what people should
        know about how they were read.

    Raises:
        ConfigurationError: It cannot be read, or an API server would refuse a pod; the message
            names the place.
    """
    left = Counter[str]()
    located: list[Located] = []
    objects = list(read_located(path))
    classes = {each["metadata"]["name"]: each for each in (*_system_classes(), *cluster.classes)}
    for where, obj in objects:
        if obj["kind"] == "PriorityClass":
            classes.setdefault(str(obj["metadata"].get("name")), obj)
        elif obj["kind"] in CLAIM_KINDS:
            continue
        elif obj["kind"] != "Pod":
            left[f"{obj['kind']}: only pods are placed"] += 1
        elif reason := _not_taken(obj):
            left[f"Pod: {reason}"] += 1
        else:
            located += [(where, readable(each, where)) for each in _copies(obj, count)]
    if not located:
        raise ConfigurationError(f"{path}: there is no pod to place in it")
    for key, number in Counter(key_of(pod) for _, pod in located).items():
        if number > 1:  # as of two with one generateName
            raise ConfigurationError(f"{path}: pod {key} is there {number} times")
    made = missing_classes((pod["spec"] for _, pod in located), classes)
    admission = Store(history=0)
    for each in (*classes.values(), *made):
        admission.put(CLASSES, each)
    notes = [f"{path}: {number} left out, {reason}" for reason, number in left.items()]
    notes += [
        f"PriorityClass {each['metadata']['name']} is not in the cluster: "
        f"it counts as {each['value']}"
        for each in made
    ]
    claims = cluster.claims | claims_in(obj for _, obj in objects)
    notes += missing_claims((pod for _, pod in located), claims)
    return [_complete(pod, admission, where) for where, pod in located], notes


def uid_of(pod: Object) -> str:
    """Return a pod's uid; one without it gets the same every time."""
    return str(pod["metadata"].get("uid") or uuid.uuid5(_UIDS, key_of(pod)))


def readable(pod: Object, where: str) -> Object:
    """Return a pod without fields that are null.

    Raises:
        ConfigurationError: It is no pod; the message names the place and the field.
    """
    given: Object = without_nulls(pod)
    with placed_mistakes(f"{where}: pod {key_of(pod)}"):
        if not isinstance(given.get("spec"), dict):
            raise TypeError("it has no spec")
        decode_pod(msgspec.json.encode(given))
    return given


def _system_classes() -> Iterator[Object]:
    return ({"metadata": {"name": n}, "value": value} for n, value in SYSTEM_CLASSES.items())


def _not_taken(pod: Object) -> str:
    metadata = pod["metadata"]
    if is_finished(pod):
        return "finished"
    if metadata.get("deletionTimestamp"):
        return "being deleted"
    is_mirror = isinstance(metadata.get("annotations"), dict) and MIRROR in metadata["annotations"]
    return "a kubelet runs it from a file of its node" if is_mirror else ""


def _copies(pod: Object, count: int | None) -> Iterator[Object]:
    base = pod["metadata"].get("name") or pod["metadata"]["generateName"].rstrip("-")
    for index in range(1 if count is None else count):
        each = copy.deepcopy(pod)
        if count is not None:
            each["metadata"].pop("uid", None)
        each["metadata"]["name"] = base if count is None else f"{base}-{index}"
        yield each


def _complete(pod: Object, admission: Store, where: str) -> Object:
    """Return a pod as an API server stores it when it is created."""
    metadata = pod["metadata"]
    metadata["namespace"] = metadata.get("namespace") or "default"
    metadata["uid"] = uid_of(pod)
    pod["spec"].pop("nodeName", None)
    pod["status"] = {"phase": "Pending"}
    with placed_mistakes(where):
        pod_rules.default(pod)
        resolve_priority(admission, pod)
    if cause := next(iter(pod_rules.validate(pod)), None):
        raise ConfigurationError(f"{where}: pod {key_of(pod)}: {cause}")
    return pod
