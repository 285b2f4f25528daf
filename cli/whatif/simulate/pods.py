"""The pods to place: read from a file, completed as an API server does, and multiplied."""

import copy
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from cli.up.objects.manifests import Object, read_located
from moorage.errors import ConfigurationError
from moorage.models import decode_pod
from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.kinds import pod_checks, pod_defaults
from sandbox.apiserver.kinds.priorities import SYSTEM_CLASSES, resolve_priority

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
        pod_defaults.default(pod)
        resolve_priority(classes, pod)
    except StatusError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if cause := next(iter(pod_checks.validate(pod)), None):
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
