"""The cluster as controllers see it: pods by their owner, and the few writes that they make."""

import secrets
from collections import OrderedDict
from contextlib import suppress
from typing import Literal

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.requests.bodies import check_object
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.preconditions import Deletion
from sandbox.apiserver.store.store import Change
from sandbox.apiserver.store.times import now, stamp
from sandbox.controllers.kinds import RESOURCES, controller_of

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

    def all(self, kind: str) -> list[Object]:
        """Return all objects of a kind."""
        return self._cluster.store.objects(RESOURCES[kind].stored_as)

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
