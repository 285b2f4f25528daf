"""Plays the kubelet, if asked to: a bound pod becomes Running and Ready after a delay.

It runs until it is deleted, or for as long as an annotation says.
"""

import asyncio
import hashlib
import uuid
from typing import Any, TypeAlias

from sandbox.apiserver.kinds.pods import RUN_SECONDS
from sandbox.apiserver.resources.table import Object
from sandbox.apiserver.store.store import Store, StoreEvent, now, stamp

PODS, NODES, LEASES = "/pods", "/nodes", "coordination.k8s.io/leases"
_Key: TypeAlias = tuple[str, str, str]
"""Namespace, name and UID of a pod."""


class Kubelet:
    """Starts pods on all nodes that exist."""

    def __init__(self, store: Store, delay_seconds: float) -> None:
        self._store = store
        self._delay = delay_seconds
        store.listen(PODS, self._on_pod)
        store.listen(NODES, self._on_node)

    def _on_pod(self, change: StoreEvent) -> None:
        pod, previous = change.item.object, change.previous
        is_new = previous is None or not previous.object["spec"].get("nodeName")
        if pod["spec"].get("nodeName") and is_new and change.kind != "DELETED":
            asyncio.get_running_loop().call_later(self._delay, self._start, _key_of(pod))

    def _on_node(self, change: StoreEvent) -> None:
        if change.kind == "ADDED":
            self._store.put(LEASES, _lease(change.item.object["metadata"]))

    def _start(self, key: _Key) -> None:
        pod = self._store.find(PODS, *key[:2])
        if pod is None or _key_of(pod) != key:
            return
        exists = self._store.find(NODES, "", pod["spec"]["nodeName"]) is not None
        is_pending = pod["status"]["phase"] == "Pending"
        if exists and is_pending and not pod["metadata"].get("deletionTimestamp"):
            self._store.put(PODS, pod | {"status": running_status(pod)})
            if seconds := _run_seconds(pod):
                asyncio.get_running_loop().call_later(seconds, self._end, key)

    def _end(self, key: _Key) -> None:
        pod = self._store.find(PODS, *key[:2])
        if pod and _key_of(pod) == key and pod["status"]["phase"] == "Running":
            self._store.put(PODS, pod | {"status": ended_status(pod)})


def _key_of(pod: Object) -> _Key:
    metadata = pod["metadata"]
    return metadata["namespace"], metadata["name"], metadata["uid"]


def _lease(node: Object) -> Object:
    """Return the Lease that `kubectl describe node` shows; nobody renews it."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node["name"], "uid": node["uid"]}
    metadata = {
        "name": node["name"],
        "namespace": "kube-node-lease",
        "uid": str(uuid.uuid4()),
        "creationTimestamp": node["creationTimestamp"],
        "ownerReferences": [owner],
    }
    renewed = now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": node["name"], "leaseDurationSeconds": 40, "renewTime": renewed}
    return {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": metadata,
        "spec": spec,
    }


def running_status(pod: Object) -> Object:
    """Return the status of the pod when all its containers run."""
    started = stamp(now())
    before = pod["status"]
    kept = ("PodScheduled", "PodResizePending", "PodResizeInProgress")
    conditions = [c for c in before.get("conditions", ()) if c.get("type") in kept]
    conditions += [
        {"type": kind, "status": "True", "lastTransitionTime": started}
        for kind in ("Initialized", "ContainersReady", "Ready")
    ]
    # What another cluster's node has set aside for a pod may differ from the pod's spec.
    aside = {each["name"]: each for each in before.get("containerStatuses", ())}
    statuses = [
        _container_status(each, started, aside.get(each["name"], {}))
        for each in pod["spec"]["containers"]
    ]
    status: Object = before
    return status | {
        "phase": "Running",
        "startTime": started,
        "conditions": conditions,
        "containerStatuses": statuses,
        "podIP": _address(pod["metadata"]["uid"]),
    }


def ended_status(pod: Object) -> Object:
    """Return the status of the pod when all its containers have ended without an error."""
    ended, status = stamp(now()), pod["status"]
    started = status.get("startTime", ended)
    terminated = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": ended}
    conditions = [
        each | {"status": "False", "reason": "PodCompleted", "lastTransitionTime": ended}
        if each["type"] in ("Ready", "ContainersReady")
        else each
        for each in status.get("conditions", ())
    ]
    statuses = [
        each | {"ready": False, "started": False, "state": {"terminated": terminated}}
        for each in status.get("containerStatuses", ())
    ]
    changes = {"phase": "Succeeded", "conditions": conditions, "containerStatuses": statuses}
    return {**status, **changes}


def _run_seconds(pod: Object) -> float:
    """Return for how many seconds the pod runs, 0 for ever."""
    return float(pod["metadata"].get("annotations", {}).get(RUN_SECONDS, 0))


def _container_status(container: Object, started: str, before: Object) -> dict[str, Any]:
    return {
        **{key: before[key] for key in ("allocatedResources", "resources") if key in before},
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": started}},
    }


def _address(uid: str) -> str:
    digest = hashlib.blake2b(uid.encode(), digest_size=3).digest()
    return f"10.{digest[0]}.{digest[1]}.{digest[2]}"
