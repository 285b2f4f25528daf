"""Deployments and ReplicaSets.

A Deployment has a ReplicaSet for each template. There are no rollouts: pods of earlier templates
stay, and a ReplicaSet that has none left is deleted.
"""

from sandbox.apiserver.resources.resource import Object
from sandbox.controllers.objects import (
    MOST_AT_ONCE,
    NO_ROLLOUT,
    Objects,
    condition,
    is_active,
    is_ready,
    owner_reference,
    pod_of,
    template_hash,
    with_times,
    worth,
)

HASH = "pod-template-hash"


def reconcile(objects: Objects, deployment: Object) -> None:
    """Give the ReplicaSet of the present template the pods that the earlier ones do not have.

    Raises:
        StatusError: The API server refuses a ReplicaSet or a pod.
    """
    current, earlier = _current(objects, deployment)
    wanted = deployment["spec"]["replicas"]
    room = max(0, wanted - len(_active_pods(objects, current)))
    try:
        for replica_set in earlier:
            kept = min(len(_active_pods(objects, replica_set)), room)
            _scale(objects, deployment, replica_set, kept)
            room -= kept
            wanted -= kept
        if earlier and wanted < deployment["spec"]["replicas"]:
            objects.record(deployment, "Warning", "NoRollout", NO_ROLLOUT)
        _scale(objects, deployment, current, wanted)
        for replica_set in earlier:
            if not _active_pods(objects, replica_set):
                objects.delete(replica_set)
    finally:
        objects.set_status(deployment, _status(objects, deployment, current, earlier))


def _current(objects: Objects, deployment: Object) -> tuple[Object, list[Object]]:
    """Return the ReplicaSet of the present template, made if there is none, and the others."""
    number = template_hash(deployment["spec"]["template"])
    owned = objects.owned("ReplicaSet", deployment)
    current = next((o for o in owned if o["metadata"].get("labels", {}).get(HASH) == number), None)
    earlier = [each for each in owned if each is not current]
    return current or objects.create(_replica_set(deployment, number), deployment), earlier


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


def _scale(objects: Objects, deployment: Object, replica_set: Object, wanted: int) -> None:
    before = replica_set["spec"]["replicas"]
    if before != wanted:
        replica_set = objects.update(
            replica_set | {"spec": replica_set["spec"] | {"replicas": wanted}}
        )
        name, way = replica_set["metadata"]["name"], "up" if wanted > before else "down"
        message = f"Scaled {way} replica set {name} from {before} to {wanted}"
        objects.record(deployment, "Normal", "ScalingReplicaSet", message)
    reconcile_replica_set(objects, replica_set)


def _status(objects: Objects, deployment: Object, current: Object, earlier: list[Object]) -> Object:
    new = _active_pods(objects, current)
    old = [pod for each in earlier for pod in _active_pods(objects, each)]
    ready, wanted = sum(map(is_ready, [*new, *old])), deployment["spec"]["replicas"]
    conditions = [_available(ready, wanted), _progressing(ready, wanted, len(old))]
    return {
        "replicas": len(new) + len(old),
        "updatedReplicas": len(new),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": max(0, wanted - ready),
        "conditions": with_times(conditions, deployment.get("status", {}).get("conditions", ())),
    }


def _available(ready: int, wanted: int) -> Object:
    if ready >= wanted:
        message = "Deployment has minimum availability."
        return condition("Available", True, "MinimumReplicasAvailable", message)
    message = "Deployment does not have minimum availability."
    return condition("Available", False, "MinimumReplicasUnavailable", message)


def _progressing(ready: int, wanted: int, old: int) -> Object:
    if old:
        # Makes `kubectl rollout status` end with an error: it would wait for ever.
        return condition("Progressing", False, "ProgressDeadlineExceeded", NO_ROLLOUT)
    if ready >= wanted:
        message = "All pods have the template of the Deployment and are ready."
        return condition("Progressing", True, "NewReplicaSetAvailable", message)
    message = f"{ready} of {wanted} pods are ready."
    return condition("Progressing", True, "ReplicaSetUpdated", message)


def reconcile_replica_set(objects: Objects, replica_set: Object) -> None:
    """Make or delete pods until there are as many as wanted.

    Raises:
        StatusError: The API server refuses a pod.
    """
    missing = replica_set["spec"]["replicas"] - len(_active_pods(objects, replica_set))
    try:
        for _ in range(min(missing, MOST_AT_ONCE)):
            prefix = f"{replica_set['metadata']['name']}-"
            objects.create(pod_of(replica_set, generateName=prefix), replica_set)
        if missing < 0:
            for pod in sorted(_active_pods(objects, replica_set), key=worth)[:-missing]:
                objects.delete(pod)
    finally:
        objects.set_status(replica_set, _replica_set_status(_active_pods(objects, replica_set)))


def _active_pods(objects: Objects, replica_set: Object) -> list[Object]:
    """Return the pods that count: a pod that has ended is replaced."""
    return list(filter(is_active, objects.pods_of(replica_set)))


def _replica_set_status(pods: list[Object]) -> Object:
    ready = sum(map(is_ready, pods))
    return {
        "replicas": len(pods),
        "fullyLabeledReplicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
