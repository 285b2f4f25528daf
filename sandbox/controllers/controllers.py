"""The loop: whatever changes, the workload that it belongs to is compared with its pods again."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.store import Change
from sandbox.controllers import daemon_sets, deployments, jobs, replica_sets, stateful_sets
from sandbox.controllers.kinds import NOT_MANAGED, RESOURCES, controller_of
from sandbox.controllers.objects import Objects
from sandbox.controllers.queue import Key, WorkQueue

_log = structlog.get_logger()

_RECONCILE: Final[Mapping[str, Callable[[Objects, Object], None]]] = {
    "Deployment": deployments.reconcile,
    "ReplicaSet": replica_sets.reconcile,
    "StatefulSet": stateful_sets.reconcile,
    "DaemonSet": daemon_sets.reconcile,
    "Job": jobs.reconcile,
}
"""Make what there is of an object's pods what its spec wants, a bounded step at a time.

Each is synchronous, so that nothing changes meanwhile; what it writes brings the object back.
"""


class Controllers:
    """Looks after the workloads of one cluster; does nothing until `run`.

    Args:
        cluster: The state of the API server.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._objects = Objects(cluster)
        self._queue = WorkQueue(time.monotonic)
        for kind in (*_RECONCILE, "Pod"):
            cluster.store.listen(RESOURCES[kind].stored_as, self._changed)
        cluster.store.listen(RESOURCES["Node"].stored_as, self._node_changed)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        while True:
            self._reconcile(await self._queue.take())
            await asyncio.sleep(0)  # lets requests in between

    def _changed(self, change: Change) -> None:
        """Queue the workload that an object belongs to in the end: a pod's Deployment, say."""
        obj = change.item.object
        while reference := controller_of(obj):
            owner = self._objects.find(reference["kind"], _space(obj), reference["name"])
            if owner is None or owner["metadata"]["uid"] != reference["uid"]:
                return
            obj = owner
        if obj["kind"] in _RECONCILE:
            self._queue.add(Key(obj["kind"], _space(obj), obj["metadata"]["name"]))

    def _node_changed(self, change: Change) -> None:
        if change.previous is None or change.kind == "DELETED" or _moved(change):
            for obj in self._objects.all("DaemonSet"):
                self._queue.add(Key("DaemonSet", _space(obj), obj["metadata"]["name"]))

    def _reconcile(self, key: Key) -> None:
        obj = self._objects.find(*key)
        if obj is None or not _is_managed(obj):
            self._queue.succeeded(key)
            return
        try:
            _RECONCILE[key.kind](self._objects, obj)
        except StatusError as error:
            _log.warning("not reconciled", kind=key.kind, name=key.name, error=str(error))
            self._queue.failed(key)
        except Exception:  # noqa: BLE001 - their fields are hardly checked, and others go on
            _log.exception("not reconciled", kind=key.kind, name=key.name)
            message = "the sandbox cannot read the spec; the log of the API server says why"
            self._objects.record(obj, "Warning", "FailedReconcile", message)
            self._queue.failed(key)
        else:
            self._queue.succeeded(key)


def _space(obj: Object) -> str:
    return str(obj["metadata"].get("namespace", ""))


def _is_managed(obj: Object) -> bool:
    metadata = obj["metadata"]
    return not metadata.get("deletionTimestamp") and NOT_MANAGED not in metadata.get(
        "annotations", {}
    )


def _moved(change: Change) -> bool:
    """Whether pods of DaemonSets may have to come to the node, or to leave it."""
    old = change.previous.object if change.previous else {}
    new = change.item.object
    same_labels = old["metadata"].get("labels") == new["metadata"].get("labels")
    return not same_labels or old.get("spec") != new.get("spec")
