"""The objects of workloads, as controllers read, make and write them."""

import hashlib
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.kinds.hooks import SUFFIX_LETTERS
from sandbox.apiserver.requests.bodies import check_object
from sandbox.apiserver.resources.table import BUILT_IN, Object, Target
from sandbox.apiserver.store.cluster import EmbeddedCluster
from sandbox.apiserver.store.store import now, stamp

RESOURCES: Final = {
    row.kind: row
    for row in BUILT_IN
    if row.kind in ("Pod", "Event", "Deployment", "ReplicaSet", "StatefulSet", "Job")
    and row.view is None
}
"""The resource of each kind."""


class ObjectWriter:
    """Reads and writes objects; every write has the API server's checks."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object; None if there is none, or none of this kind is looked after."""
        resource = RESOURCES.get(kind)
        return self._cluster.store.find(resource.stored_as, namespace, name) if resource else None

    def owned(self, kind: str, owner: Object) -> Iterator[Object]:
        """Yield the objects of a kind that an object controls, in the order of their creation."""
        uid = owner["metadata"]["uid"]
        for key in self._cluster.store.owners.dependents(uid):
            obj = self._cluster.store.find(*key) if key[0] == RESOURCES[kind].stored_as else None
            if obj and (controller_of(obj) or {}).get("uid") == uid:
                yield obj

    def pods_of(self, owner: Object) -> list[Object]:
        """Return the pods that an object controls, those that are being deleted left out."""
        pods = self.owned("Pod", owner)
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]

    def create(self, obj: Object, owner: Object) -> Object:
        """Create an object that *owner* controls; an event says so if it is refused.

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
        self._cluster.delete(_target(obj), uid=obj["metadata"]["uid"])

    def record(
        self, obj: Object, kind: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Write an event about an object, unless it was written about this generation before."""
        metadata, time = obj["metadata"], stamp(now())
        written = f"{metadata['uid']} {metadata.get('generation')} {reason} {message}"
        number = hashlib.blake2b(written.encode(), digest_size=8).hexdigest()
        about = {key: metadata[key] for key in ("name", "namespace", "uid")}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{number}", "namespace": about["namespace"]},
            "involvedObject": {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **about},
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": f"{obj['kind'].lower()}-controller"},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        }
        target = Target(resource=RESOURCES["Event"], namespace=metadata["namespace"])
        with suppress(StatusError):  # it is there already, or the namespace is being deleted
            self._cluster.create(target, event)


def _target(obj: Object, subresource: str = "") -> Target:
    metadata = obj["metadata"]
    return Target(
        resource=RESOURCES[obj["kind"]],
        namespace=metadata["namespace"],
        name=metadata["name"],
        subresource=subresource,
    )


def controller_of(obj: Object) -> Object | None:
    """Return the owner reference of the object's controller, if it has one."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)


def template_hash(workload: Object) -> str:
    """Return a short text that differs for different templates: digits written as letters."""
    template = msgspec.json.encode(workload["spec"]["template"], order="sorted")
    letters = (ord(digit) % len(SUFFIX_LETTERS) for digit in str(zlib.crc32(template)))
    return "".join(map(SUFFIX_LETTERS.__getitem__, letters))


def owner_reference(owner: Object) -> Object:
    """Return the reference to the controller of an object."""
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


def phase_of(pod: Object) -> str:
    """Return the phase of a pod."""
    return str(pod.get("status", {}).get("phase", "Pending"))


def is_active(pod: Object) -> bool:
    """Whether the pod has not ended."""
    return phase_of(pod) not in ("Succeeded", "Failed")


def is_ready(pod: Object) -> bool:
    """Whether the pod is ready."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def readiness(pods: list[Object]) -> Object:
    """Return how many pods are ready, as a part of a status."""
    ready = sum(map(is_ready, pods))
    return {"readyReplicas": ready, "availableReplicas": ready}


def condition(kind: str, status: bool, reason: str, message: str = "") -> Object:
    """Return a condition of a status."""
    return {"type": kind, "status": str(status), "reason": reason, "message": message}


def dated(new: Object, obj: Object) -> Object:
    """Return a condition with the time since when it has this status in the object."""
    conditions = obj.get("status", {}).get("conditions", ())
    old: Object = next((each for each in conditions if each["type"] == new["type"]), {})
    since = old.get("lastTransitionTime") if old.get("status") == new["status"] else None
    return new | {"lastTransitionTime": since or stamp(now())}
