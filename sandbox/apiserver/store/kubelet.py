"""Plays the kubelet, if asked to: a bound pod becomes Running and Ready after a delay.

It runs until it is deleted, or for as long as an annotation says.
"""

import asyncio
import hashlib
from typing import Any

from sandbox.apiserver.kinds.pod_checks import RUN_SECONDS
from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.store import Change, Store
from sandbox.apiserver.store.times import now, stamp

PODS = "/pods"


class Kubelet:
    """Starts pods on all nodes."""

    def __init__(self, store: Store, delay_seconds: float) -> None:
        self._store = store
        self._delay = delay_seconds
        store.listen(PODS, self._on_change)

    def _on_change(self, change: Change) -> None:
        pod, previous = change.item.object, change.previous
        if change.kind == "DELETED" or not pod["spec"].get("nodeName"):
            return
        if previous is None or not previous.object["spec"].get("nodeName"):
            metadata = pod["metadata"]
            key = (metadata["namespace"], metadata["name"], metadata["uid"])
            asyncio.get_running_loop().call_later(self._delay, self._start, *key)

    def _start(self, namespace: str, name: str, uid: str) -> None:
        pod = self._store.find(PODS, namespace, name)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        if pod["status"]["phase"] == "Pending" and not pod["metadata"].get("deletionTimestamp"):
            self._store.put(PODS, pod | {"status": running_status(pod)})
            if seconds := _run_seconds(pod):
                asyncio.get_running_loop().call_later(seconds, self._end, namespace, name, uid)

    def _end(self, namespace: str, name: str, uid: str) -> None:
        pod = self._store.find(PODS, namespace, name)
        if pod and pod["metadata"]["uid"] == uid and pod["status"]["phase"] == "Running":
            self._store.put(PODS, pod | {"status": ended_status(pod)})


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
