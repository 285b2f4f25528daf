"""Controllers of workloads: they make and delete the pods of Deployments, Jobs and their like.

They run in the process of the embedded API server, on its state, if `--run-controllers` is given.
Whatever changes, the workload that it belongs to is compared with its pods again. A changed
template replaces all pods at once.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

import structlog

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.resources.table import Object
from sandbox.apiserver.store.cluster import EmbeddedCluster
from sandbox.apiserver.store.store import StoreEvent, now, stamp
from sandbox.workloads import (
    RESOURCES,
    ObjectWriter,
    condition,
    controller_of,
    dated,
    is_active,
    is_ready,
    owner_reference,
    phase_of,
    pod_of,
    readiness,
    template_hash,
)

_log = structlog.get_logger()

NOT_MANAGED: Final = "sandbox.moorage.io/not-managed"
"""The annotation of a workload whose pods somebody else makes."""

MOST_AT_ONCE = 100
"""Pods that are made or deleted in one step, so that clients get answers in between."""

SETTLE_SECONDS = 0.1
"""Changes of an object within this time are handled together."""

RETRY_SECONDS = 2.0
"""After a failure, unless a change brings the object back before."""

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of an object that controllers look after."""


class Controllers:
    """Looks after the workloads of one cluster from now on.

    Args:
        cluster: The state of the API server.
    """

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._objects = ObjectWriter(cluster)
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        for kind in (*_RECONCILE, "Pod"):
            cluster.store.listen(RESOURCES[kind].stored_as, self._changed)

    def _changed(self, change: StoreEvent) -> None:
        """Have the workload reconciled that an object belongs to in the end: a pod's Deployment."""
        obj = change.item.object
        while reference := controller_of(obj):
            space = obj["metadata"]["namespace"]
            owner = self._objects.find(reference["kind"], space, reference["name"])
            if owner is None or owner["metadata"]["uid"] != reference["uid"]:
                return
            obj = owner
        if obj["kind"] in _RECONCILE:
            metadata = obj["metadata"]
            self._await((obj["kind"], metadata["namespace"], metadata["name"]), SETTLE_SECONDS)

    def _await(self, key: Key, seconds: float) -> None:
        """Have an object reconciled after this time, or sooner if it is due sooner already."""
        loop, known = asyncio.get_running_loop(), self._timers.get(key)
        if known and known.when() <= loop.time() + seconds:
            return
        if known:
            known.cancel()
        self._timers[key] = loop.call_later(seconds, self._reconcile, key)

    def _reconcile(self, key: Key) -> None:
        del self._timers[key]
        obj = self._objects.find(*key)
        if obj is None or not _is_managed(obj):
            return
        try:
            _RECONCILE[key[0]](self._objects, obj)
        except StatusError as error:  # of what was not made an event says so, too
            _log.warning("tried again", kind=key[0], name=key[2], problem=str(error))
            self._await(key, RETRY_SECONDS)
        except Exception:  # noqa: BLE001 - their fields are hardly checked, and others go on
            _log.exception("not reconciled", kind=key[0], name=key[2])
            message = "the sandbox cannot read the spec; the log of the API server says why"
            self._objects.record(obj, "Warning", "FailedReconcile", message)


HASH = "pod-template-hash"


def _reconcile_deployment(objects: ObjectWriter, deployment: Object) -> None:
    """Scale the ReplicaSet of the present template; then others go, with their pods."""
    number, wanted = template_hash(deployment), deployment["spec"]["replicas"]
    owned = list(objects.owned("ReplicaSet", deployment))
    current = next((o for o in owned if o["metadata"].get("labels", {}).get(HASH) == number), None)
    current = current or objects.create(_replica_set(deployment, number), deployment)
    try:
        _scale(objects, deployment, current, wanted)
        for each in owned:
            if each["metadata"]["uid"] != current["metadata"]["uid"]:
                objects.delete(each)
    finally:
        pods = list(filter(is_active, objects.pods_of(current)))
        objects.set_status(deployment, _deployment_status(deployment, pods))


def _replica_set(deployment: Object, number: str) -> Object:
    spec = deployment["spec"]
    template, selector = spec["template"], spec.get("selector") or {}
    given = template.get("metadata") or {}
    labels = given.get("labels", {}) | {HASH: number}
    matched = selector.get("matchLabels", {}) | {HASH: number}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{deployment['metadata']['name']}-{number}",
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": 0,
            "selector": selector | {"matchLabels": matched},
            "template": template | {"metadata": given | {"labels": labels}},
        },
    }


def _scale(objects: ObjectWriter, deployment: Object, replica_set: Object, wanted: int) -> None:
    before = replica_set["spec"]["replicas"]
    if before != wanted:
        spec = replica_set["spec"] | {"replicas": wanted}
        replica_set = objects.update(replica_set | {"spec": spec})
        name, way = replica_set["metadata"]["name"], "up" if wanted > before else "down"
        message = f"Scaled {way} replica set {name} from {before} to {wanted}"
        objects.record(deployment, "Normal", "ScalingReplicaSet", message)
    _reconcile_replica_set(objects, replica_set)


def _deployment_status(deployment: Object, pods: list[Object]) -> Object:
    ready, wanted = sum(map(is_ready, pods)), deployment["spec"]["replicas"]
    if ready >= wanted:
        available = condition("Available", True, "MinimumReplicasAvailable")
        progressing = condition("Progressing", True, "NewReplicaSetAvailable")
    else:
        available = condition("Available", False, "MinimumReplicasUnavailable")
        progressing = condition("Progressing", True, "ReplicaSetUpdated")
    return {
        "replicas": len(pods),
        "updatedReplicas": len(pods),
        "unavailableReplicas": max(0, wanted - ready),
        "conditions": [dated(each, deployment) for each in (available, progressing)],
        **readiness(pods),
    }


def _reconcile_replica_set(objects: ObjectWriter, replica_set: Object) -> None:
    """Make or delete pods until there are as many as wanted; a pod that has ended is replaced."""
    try:
        name, wanted = replica_set["metadata"]["name"], replica_set["spec"]["replicas"]
        for _ in range(_missing_after_deletion(objects, replica_set, wanted)):
            objects.create(pod_of(replica_set, generateName=f"{name}-"), replica_set)
    finally:
        pods = list(filter(is_active, objects.pods_of(replica_set)))
        status = {"replicas": len(pods), "fullyLabeledReplicas": len(pods)}
        objects.set_status(replica_set, status | readiness(pods))


def _missing_after_deletion(objects: ObjectWriter, owner: Object, wanted: int) -> int:
    """Delete the active pods that are too many; return how many are to be made now."""
    active = list(filter(is_active, objects.pods_of(owner)))
    for pod in sorted(active, key=_worth)[: max(0, len(active) - wanted)]:
        objects.delete(pod)
    return min(wanted - len(active), MOST_AT_ONCE)


def _worth(pod: Object) -> tuple[bool, bool, float]:
    """Return a key that sorts the pods first that can go most easily: unplaced, unready, young."""
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return bool(pod["spec"].get("nodeName")), is_ready(pod), -created.timestamp()


REVISION = "controller-revision-hash"


def _reconcile_stateful_set(objects: ObjectWriter, stateful_set: Object) -> None:
    """Make the missing pods from the lowest number on, or delete those with other numbers."""
    revision = f"{stateful_set['metadata']['name']}-{template_hash(stateful_set)}"
    try:
        for pod in objects.pods_of(stateful_set):
            is_present = pod["metadata"].get("labels", {}).get(REVISION) == revision
            if not (is_present and is_active(pod)):
                objects.delete(pod)
        _complete(objects, stateful_set, revision)
    finally:
        pods = objects.pods_of(stateful_set)
        status = {"replicas": len(pods), "updatedReplicas": len(pods)}
        objects.set_status(stateful_set, status | readiness(pods))


def _complete(objects: ObjectWriter, stateful_set: Object, revision: str) -> None:
    """Make missing pods; once all are there (and ready, if one waits for another) delete others."""
    spec = stateful_set["spec"]
    pods = {pod["metadata"]["name"]: pod for pod in objects.pods_of(stateful_set)}
    first = (spec.get("ordinals") or {}).get("start", 0)
    for number in range(first, first + spec["replicas"]):
        name = f"{stateful_set['metadata']['name']}-{number}"
        pod = pods.pop(name, None)
        if pod is None:
            labels = {
                "statefulset.kubernetes.io/pod-name": name,
                "apps.kubernetes.io/pod-index": str(number),
                REVISION: revision,
            }
            made = pod_of(stateful_set, name=name, labels=labels)
            made["spec"] |= {"hostname": name, "subdomain": spec.get("serviceName", "")}
            objects.create(made, stateful_set)
        if spec["podManagementPolicy"] != "Parallel" and not (pod and is_ready(pod)):
            return
    for pod in pods.values():
        objects.delete(pod)


INDEX = "batch.kubernetes.io/job-completion-index"


def _reconcile_job(objects: ObjectWriter, job: Object) -> None:
    """Make pods that run until enough of them have succeeded, or delete those that are too many."""
    end = _end(job, objects.pods_of(job))
    wanted = 0 if end else _wanted(job, objects.pods_of(job))
    try:
        for _ in range(_missing_after_deletion(objects, job, wanted)):
            objects.create(_pod_of_job(job, objects.pods_of(job)), job)
    finally:
        objects.set_status(job, _job_status(job, objects.pods_of(job), end))


def _end(job: Object, pods: list[Object]) -> Object | None:
    """Return the condition with which the Job has ended, if it has."""
    for known in job.get("status", {}).get("conditions", ()):
        if known["type"] in ("Complete", "Failed"):
            return {key: known[key] for key in ("type", "status", "reason", "message")}
    if _count(pods, "Failed") > job["spec"]["backoffLimit"]:
        message = "Job has reached the specified backoff limit"
        return condition("Failed", True, "BackoffLimitExceeded", message)
    succeeded, completions = _count(pods, "Succeeded"), job["spec"].get("completions")
    is_last = not any(map(is_active, pods))
    if succeeded and is_last if completions is None else succeeded >= completions:
        return condition("Complete", True, "CompletionsReached", "Reached expected number of pods")
    return None


def _wanted(job: Object, pods: list[Object]) -> int:
    """Return how many pods should run."""
    spec = job["spec"]
    if spec.get("suspend"):
        return 0
    succeeded, most = _count(pods, "Succeeded"), int(spec["parallelism"])
    completions = spec.get("completions")
    if completions is None:  # the first success says that there is no more work
        return sum(map(is_active, pods)) if succeeded else most
    return min(most, int(completions) - succeeded)


def _pod_of_job(job: Object, pods: list[Object]) -> Object:
    prefix = f"{job['metadata']['name']}-"
    if job["spec"]["completionMode"] != "Indexed":
        return pod_of(job, generateName=prefix)
    taken = {pod["metadata"]["labels"].get(INDEX) for pod in pods if phase_of(pod) != "Failed"}
    index = next(each for each in map(str, range(len(pods) + 1)) if each not in taken)
    pod = pod_of(job, generateName=f"{prefix}{index}-", labels={INDEX: index})
    pod["metadata"]["annotations"][INDEX] = index
    return pod


def _count(pods: list[Object], wanted: str) -> int:
    return sum(phase_of(pod) == wanted for pod in pods)


def _job_status(job: Object, pods: list[Object], end: Object | None) -> Object:
    before = job.get("status", {})
    active = list(filter(is_active, pods))
    status = {
        "startTime": before.get("startTime") or stamp(now()),
        "active": len(active),
        "ready": sum(map(is_ready, active)),
        "succeeded": _count(pods, "Succeeded"),
        "failed": _count(pods, "Failed"),
    }
    if end:
        status["conditions"] = [dated(end, job)]
        if end["type"] == "Complete":
            status["completionTime"] = before.get("completionTime") or stamp(now())
    return status


_RECONCILE: Final[Mapping[str, Callable[[ObjectWriter, Object], None]]] = {
    "Deployment": _reconcile_deployment,
    "ReplicaSet": _reconcile_replica_set,
    "StatefulSet": _reconcile_stateful_set,
    "Job": _reconcile_job,
}
"""Make what there is of an object's pods what its spec wants, a bounded step at a time.

Each is synchronous, so that nothing changes meanwhile; what it writes brings the object back.
It raises StatusError if the API server refuses what it makes.
"""


def _is_managed(obj: Object) -> bool:
    metadata = obj["metadata"]
    annotations = metadata.get("annotations", {})
    return not metadata.get("deletionTimestamp") and NOT_MANAGED not in annotations
