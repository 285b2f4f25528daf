"""Whatever changes, the workload that it belongs to is queued and compared with its pods again."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import structlog

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.store import Change
from sandbox.controllers import deployments, jobs, stateful_sets
from sandbox.controllers.objects import NOT_MANAGED, RESOURCES, Objects, controller_of

_log = structlog.get_logger()

_RECONCILE: Final[Mapping[str, Callable[[Objects, Object], None]]] = {
    "Deployment": deployments.reconcile,
    "ReplicaSet": deployments.reconcile_replica_set,
    "StatefulSet": stateful_sets.reconcile,
    "Job": jobs.reconcile,
}
"""Make what there is of an object's pods what its spec wants, a bounded step at a time.

Each is synchronous, so that nothing changes meanwhile; what it writes brings the object back.
"""

SETTLE_SECONDS = 0.1
"""Changes of an object within this time are handled together."""

FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 30.0

MOST_RETRIES = 10
"""Tries after a failure; then only another change brings the object back."""


class Key(NamedTuple):
    """An object that controllers look after."""

    kind: str
    namespace: str
    name: str


class WorkQueue:
    """Hands out keys one at a time; a key that waits already is not added twice.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._added = asyncio.Event()

    def add(self, key: Key, delay: float = SETTLE_SECONDS) -> None:
        """Have a key reconciled after a delay, or sooner if it is due sooner already."""
        due = self._clock() + delay
        self._due[key] = min(due, self._due.get(key, due))
        self._added.set()

    async def take(self) -> Key:
        """Wait for the next key that is due, and return it."""
        while True:
            self._added.clear()
            key = min(self._due, key=self._due.__getitem__, default=None)
            wait = None if key is None else self._due[key] - self._clock()
            if key is not None and wait is not None and wait <= 0:
                del self._due[key]
                return key
            try:
                async with asyncio.timeout(wait):
                    await self._added.wait()
            except TimeoutError:
                pass  # a key is due

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def failed(self, key: Key) -> None:
        """Have a key tried again, later each time and not for ever."""
        count = self._failures.get(key, 0)
        if count >= MOST_RETRIES:
            return
        self._failures[key] = count + 1
        self.add(key, min(FIRST_RETRY_SECONDS * 2.0**count, LAST_RETRY_SECONDS))


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
