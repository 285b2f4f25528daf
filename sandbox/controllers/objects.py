"""The cluster as controllers see it: their kinds, pods by their owner, and the writes they make."""

import secrets
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.kinds.names import SUFFIX_LETTERS
from sandbox.apiserver.requests.bodies import check_object
from sandbox.apiserver.resources.builtin import BUILT_IN
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.resources.resource import Object, Resource
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.metadata import Deletion
from sandbox.apiserver.store.store import Change, now, stamp

_VERSIONS: Final = {
    "Pod": "v1",
    "Event": "v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
}

RESOURCES: Final[dict[str, Resource]] = {
    row.kind: row for row in BUILT_IN if _VERSIONS.get(row.kind) == row.api_version
}
"""The resource of each kind."""

NOT_MANAGED: Final = "sandbox.moorage.io/not-managed"
"""The annotation of a workload whose pods somebody else makes."""

NO_ROLLOUT: Final = (
    "The template has changed. The sandbox makes no rollouts: new pods get the new template, "
    "pods that are there keep theirs until they are deleted."
)

MOST_AT_ONCE = 100
"""Pods that are made or deleted in one step, so that clients get answers in between."""

_REMEMBERED_EVENTS = 1024


class Objects:
    """Reads and writes objects; every write has the API server's checks.

    Args:
        cluster: The state of the API server.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pods: dict[str, dict[tuple[str, str], Object]] = {}
        self._recorded: OrderedDict[tuple[str, ...], None] = OrderedDict()
        cluster.store.listen(RESOURCES["Pod"].stored_as, self._index)

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object; None if there is none, or none of this kind is looked after."""
        resource = RESOURCES.get(kind)
        found = resource and self._cluster.store.find(resource.stored_as, namespace, name)
        return found or None

    def pods_of(self, owner: Object) -> list[Object]:
        """Return the pods that an object controls, those that are being deleted left out."""
        pods = self._pods.get(owner["metadata"]["uid"], {}).values()
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]

    def owned(self, kind: str, owner: Object) -> list[Object]:
        """Return the objects of a kind that an object controls."""
        uid, space = owner["metadata"]["uid"], owner["metadata"]["namespace"]
        items = self._cluster.store.collection(RESOURCES[kind].stored_as).list(space)
        found = ((controller_of(item.object) or {}, item.object) for item in items)
        return [obj for reference, obj in found if reference.get("uid") == uid]

    def create(self, obj: Object, owner: Object) -> Object:
        """Create an object that *owner* controls, or wants; an event says so if it is refused.

        Raises:
            StatusError: It is refused.
        """
        resource = RESOURCES[obj["kind"]]
        target = Target(resource=resource, namespace=owner["metadata"]["namespace"])
        try:
            return self._cluster.create(target, check_object(resource, obj)).object
        except StatusError as error:
            self.record(owner, "Warning", "FailedCreate", f"Error creating: {error}")
            raise

    def update(self, obj: Object) -> Object:
        """Replace all of an object but its status."""
        return self._cluster.update(_target(obj), obj).object

    def set_status(self, obj: Object, status: Object) -> None:
        """Write the status of an object, if it differs."""
        current = self.find(obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"])
        if current is None:
            return
        if obj["kind"] != "Job":  # its status has no such field
            status = {"observedGeneration": obj["metadata"]["generation"]} | status
        self._cluster.update(_target(obj, "status"), current | {"status": status})

    def delete(self, obj: Object) -> None:
        """Delete an object."""
        self._cluster.delete(_target(obj), Deletion(uid=obj["metadata"]["uid"]))

    def record(
        self, obj: Object, kind: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Write an event about an object, unless the same was written before."""
        metadata = obj["metadata"]
        key = (metadata["uid"], str(metadata.get("generation", "")), reason, message)
        if key in self._recorded:
            return
        self._recorded[key] = None
        if len(self._recorded) > _REMEMBERED_EVENTS:
            self._recorded.popitem(last=False)
        resource = RESOURCES["Event"]
        target = Target(resource=resource, namespace=metadata["namespace"])
        with suppress(StatusError):  # the namespace is being deleted
            self._cluster.create(target, _event(obj, kind, reason, message))

    def _index(self, change: Change) -> None:
        pod = change.item.object
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if change.previous:
            self._forget(change.previous.object, key)
        reference = controller_of(pod)
        if reference and change.kind != "DELETED":
            self._pods.setdefault(reference["uid"], {})[key] = pod

    def _forget(self, pod: Object, key: tuple[str, str]) -> None:
        uid = (controller_of(pod) or {}).get("uid", "")
        pods = self._pods.get(uid, {})
        pods.pop(key, None)
        if not pods:
            self._pods.pop(uid, None)


def _target(obj: Object, subresource: str = "") -> Target:
    metadata = obj["metadata"]
    return Target(
        resource=RESOURCES[obj["kind"]],
        namespace=metadata["namespace"],
        name=metadata["name"],
        subresource=subresource,
    )


def _event(obj: Object, kind: str, reason: str, message: str) -> Object:
    metadata, time = obj["metadata"], stamp(now())
    component = f"{obj['kind'].lower()}-controller"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata['name']}.{secrets.token_hex(8)}",
            "namespace": metadata["namespace"],
        },
        "involvedObject": {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }


def controller_of(obj: Object) -> Object | None:
    """Return the owner reference of the object's controller, if it has one."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)


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


def condition(kind: str, status: bool, reason: str, message: str) -> Object:
    """Return a condition without times."""
    return {"type": kind, "status": str(status), "reason": reason, "message": message}


def with_times(conditions: Iterable[Object], before: Iterable[Object]) -> list[Object]:
    """Return conditions with the times of those *before* as far as nothing has changed."""
    known = {each["type"]: each for each in before}
    return [_with_times(each, known.get(each["type"], {})) for each in conditions]


def _with_times(new: Object, old: Object) -> Object:
    time = stamp(now())
    same = all(old.get(key) == value for key, value in new.items())
    moved = old.get("status") != new["status"]
    return new | {
        "lastUpdateTime": old.get("lastUpdateTime", time) if same else time,
        "lastTransitionTime": time if moved else old.get("lastTransitionTime", time),
    }
