"""What is given: a cluster, from a dump or from an API server, and the pods to place."""

import copy
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from cli.shared.manifests import Object, read_located
from moorage.errors import ConfigurationError
from moorage.models import ObjectKind, decode_pod
from moorage.rules import selects_object
from moorage_host.kube import KubeError, KubeStatusError, connect
from moorage_host.kube.client import KubeClient
from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.kinds import pods as pod_rules
from sandbox.apiserver.kinds.pods import SYSTEM_CLASSES, resolve_priority
from sandbox.apiserver.resources.builtin import BUILT_IN

READ_SECONDS: Final = 30.0
"""How long the API server may take for one answer."""

PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
NOT_FOUND: Final = 404

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
        further: What plugins read beside nodes and pods, by kind.
        notes: What people should know about how they were read.
    """

    place: str
    nodes: list[Located] = field(default_factory=list)
    pods: list[Located] = field(default_factory=list)
    classes: list[Object] = field(default_factory=list)
    further: dict[ObjectKind, list[Object]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_dump(path: Path, readers: Readers) -> ClusterObjects:
    """Read what `kubectl get nodes,pods -A -o json` or `-o yaml` prints.

    Raises:
        ConfigurationError: It cannot be read, or has no nodes; the message names the place.
    """
    located = list(read_located(path))
    found = ClusterObjects(place=str(path), further={kind: [] for kind in readers})
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
        for kind in readers:
            if (kind.api_version, kind.plural) == (obj.get("apiVersion"), plural):
                found.further[kind] += [obj] if selects_object(kind, obj) else []
    if not found.nodes:
        raise ConfigurationError(
            f"{path}: there is no node in it: write it with "
            f"`kubectl get {','.join(('nodes', 'pods', *_names(readers)))} -A -o json`"
        )
    found.notes += _missing(found, readers)
    return found


async def read_cluster(kubeconfig: Path, readers: Readers) -> ClusterObjects:
    """Read the same from the API server of a kubeconfig; nothing is written there.

    Raises:
        ConfigurationError: It cannot be reached, or does not let the user read.
    """
    client = await connect(kubeconfig)
    found = ClusterObjects(place=client.host)
    try:
        found.nodes = [*_located(await _read(client, "/api/v1/nodes", {}), "Node")]
        found.pods = [*_located(await _read(client, "/api/v1/pods", {}), "Pod")]
        found.classes = await _read(client, PRIORITY_CLASSES, {})
        for kind in readers:
            found.further[kind] = await _read(client, kind.path, kind.query, kind.optional)
    except (KubeError, TimeoutError, msgspec.DecodeError) as error:
        raise ConfigurationError(f"cannot read the cluster: {error}") from error
    finally:
        await client.close()
    if not found.nodes:
        raise ConfigurationError(f"the cluster at {client.host} has no nodes")
    return found


async def _read(
    client: KubeClient, path: str, query: Mapping[str, str], optional: bool = False
) -> list[Object]:
    try:
        items = await client.items(path, query=query, timeout=READ_SECONDS)
    except KubeStatusError as error:
        if optional and error.status == NOT_FOUND:
            return []
        raise
    return [msgspec.json.decode(item) for item in items]


def _located(items: Iterable[Object], kind: str) -> Iterator[Located]:
    for item in items:
        metadata = item["metadata"]
        name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        yield f"{kind} {name}", item


def _custom(objects: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Yield kind and plural of the custom resources that a dump defines."""
    for obj in objects:
        if obj["kind"] == "CustomResourceDefinition":
            names = (obj.get("spec") or {}).get("names") or {}
            yield str(names.get("kind")), str(names.get("plural"))


def _missing(found: ClusterObjects, readers: Readers) -> Iterator[str]:
    for kind, plugin in readers.items():
        if not found.further[kind] and not kind.optional:
            yield (
                f"{plugin} reads {kind}, of which {found.place} has none; a dump with them: "
                f"kubectl get {','.join(('nodes', 'pods', *_names(readers)))} -A -o json"
            )


def _names(readers: Readers) -> list[str]:
    return list(dict.fromkeys(re.sub(r"\[.*", "", str(kind)) for kind in readers))


MIRROR: Final = "kubernetes.io/config.mirror"
"""The annotation of a pod that a kubelet runs from a file of its node; nobody schedules it."""

FINISHED: Final = ("Succeeded", "Failed")
_UIDS: Final = uuid.UUID("b2f5ff47-4366-4c60-8a6c-3a1f0b3bb3a4")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsToPlace:
    """Pods without a node, in order of their arrival.

    Attributes:
        documents: As an API server would have them.
        notes: What people should know about how they were read.
    """

    documents: list[Object]
    notes: tuple[str, ...]

    @property
    def keys(self) -> frozenset[str]:
        """Their names, as NAMESPACE/NAME."""
        return frozenset(map(key_of, self.documents))


def key_of(pod: Object) -> str:
    """Return a pod's name as NAMESPACE/NAME."""
    metadata = pod["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"


def read_pods(path: Path, count: int | None, classes: Iterable[Object]) -> PodsToPlace:
    """Read the pods in a file; each *count* times under names of their own, if that is given.

    Their nodes are left out. Pods that ended, that are being deleted or that a kubelet runs from a
    file are not taken.

    Raises:
        ConfigurationError: It cannot be read, or an API server would refuse a pod; the message
            names the place.
    """
    known, left = _Classes(classes), Counter[str]()
    documents: list[Object] = []
    for where, obj in read_located(path):
        if obj["kind"] != "Pod":
            left[f"{obj['kind']}: only pods are placed"] += 1
        elif reason := _not_taken(obj):
            left[f"Pod: {reason}"] += 1
        else:
            documents += [_complete(each, known, where) for each in _copies(obj, count)]
    if not documents:
        raise ConfigurationError(f"{path}: there is no pod to place in it")
    for key, number in Counter(map(key_of, documents)).items():
        if number > 1:
            raise ConfigurationError(f"{path}: pod {key} is there {number} times")
    notes = (f"{path}: {number} left out, {reason}" for reason, number in left.items())
    return PodsToPlace(documents=documents, notes=(*notes, *known.notes))


def uid_of(pod: Object) -> str:
    """Return a pod's uid; one without it gets the same every time."""
    return str(pod["metadata"].get("uid") or uuid.uuid5(_UIDS, key_of(pod)))


def readable(pod: Object, where: str) -> Object:
    """Return a pod without fields that are null.

    Raises:
        ConfigurationError: It is no pod; the message names the place and the field.
    """
    given: Object = _without_nulls(pod)
    try:
        if not isinstance(given.get("spec"), dict):
            raise ConfigurationError(f"{where}: pod {key_of(pod)} has no spec")
        decode_pod(msgspec.json.encode(given))
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{where}: pod {key_of(pod)}: {error}") from error
    return given


def _not_taken(pod: Object) -> str:
    metadata, status = pod["metadata"], pod.get("status")
    if isinstance(status, dict) and status.get("phase") in FINISHED:
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


def _complete(pod: Object, classes: "_Classes", where: str) -> Object:
    """Return a pod as an API server stores it when it is created."""
    pod = readable(pod, where)
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["namespace"] = metadata.get("namespace") or "default"
    metadata["uid"] = uid_of(pod)
    spec.pop("nodeName", None)
    pod["status"] = {"phase": "Pending"}
    classes.know(spec)
    try:
        pod_rules.default(pod)
        resolve_priority(classes, pod)
    except StatusError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if cause := next(iter(pod_rules.validate(pod)), None):
        raise ConfigurationError(f"{where}: pod {key_of(pod)}: {cause}")
    return pod


class _Classes:
    """PriorityClasses, as admission reads them; those that nobody gave get the pod's own values."""

    def __init__(self, classes: Iterable[Object]) -> None:
        self._classes = {
            name: {"metadata": {"name": name}, "value": value}
            for name, value in SYSTEM_CLASSES.items()
        } | {each["metadata"]["name"]: each for each in classes}
        self.notes: list[str] = []

    def find(self, storage: str, namespace: str, name: str) -> Object | None:
        """Return a class."""
        del storage, namespace
        return self._classes.get(name)

    def objects(self, storage: str) -> list[Object]:
        """Return all classes."""
        del storage
        return list(self._classes.values())

    def know(self, spec: Object) -> None:
        """Make a class that only a pod names."""
        name = spec.get("priorityClassName")
        if name and name not in self._classes:
            value = spec.get("priority", 0)
            self._classes[name] = {"metadata": {"name": name}, "value": value}
            self.notes.append(f"PriorityClass {name} is not in the cluster: it counts as {value}")


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
