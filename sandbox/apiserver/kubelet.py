"""Plays the kubelet, if asked to: a bound pod becomes Running after a moment, and Ready."""

import asyncio
import hashlib
from typing import Any

from sandbox.apiserver.resources import BY_PATH
from sandbox.apiserver.store import Object, Store
from sandbox.apiserver.times import now, stamp


class Kubelet:
    """Starts pods on all nodes."""

    def __init__(self, store: Store, delay_seconds: float) -> None:
        self._store = store
        self._delay = delay_seconds
        self._storage = BY_PATH["", "v1", "pods"].stored_as

    def on_bound(self, pod: Object) -> None:
        """Start the pod after the delay, if it is still the same pod then."""
        metadata = pod["metadata"]
        key = (metadata["namespace"], metadata["name"], metadata["uid"])
        asyncio.get_running_loop().call_later(self._delay, self._start, *key)

    def _start(self, namespace: str, name: str, uid: str) -> None:
        item = self._store.collection(self._storage).get(namespace, name)
        if item is None or item.object["metadata"]["uid"] != uid:
            return
        pod = item.object
        if pod["status"]["phase"] != "Pending" or pod["metadata"].get("deletionTimestamp"):
            return
        self._store.put(self._storage, pod | {"status": running_status(pod)})


def running_status(pod: Object) -> Object:
    """Return the status of the pod when all its containers run."""
    started = stamp(now())
    conditions = [c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"]
    conditions += [
        {"type": kind, "status": "True", "lastTransitionTime": started}
        for kind in ("Initialized", "ContainersReady", "Ready")
    ]
    statuses = [_container_status(each, started) for each in pod["spec"]["containers"]]
    status: Object = pod["status"]
    return status | {
        "phase": "Running",
        "startTime": started,
        "conditions": conditions,
        "containerStatuses": statuses,
        "podIP": _address(pod["metadata"]["uid"]),
    }


def _container_status(container: Object, started: str) -> dict[str, Any]:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": started}},
    }


def _address(uid: str) -> str:
    digest = hashlib.blake2b(uid.encode(), digest_size=3).digest()
    return f"10.{digest[0]}.{digest[1]}.{digest[2]}"
