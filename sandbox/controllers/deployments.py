"""Deployments: a ReplicaSet for each template. No rollouts: earlier ReplicaSets keep their pods."""

from sandbox.apiserver.resources.resource import Object
from sandbox.controllers import replica_sets
from sandbox.controllers.conditions import condition, with_times
from sandbox.controllers.objects import Objects
from sandbox.controllers.pods import is_ready, owner_reference, template_hash
from sandbox.controllers.rollouts import EXPLANATION, note_no_rollout

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


def reconcile(objects: Objects, deployment: Object) -> None:
    """Give the ReplicaSet of the present template the pods that the earlier ones do not have.

    Raises:
        StatusError: The API server refuses a ReplicaSet or a pod.
    """
    current = _current(objects, deployment)
    deployment = _note_revision(objects, deployment, current)
    earlier = _earlier(objects, deployment, current)
    wanted = deployment["spec"]["replicas"]
    room = max(0, wanted - len(replica_sets.active_pods(objects, current)))
    try:
        for replica_set in earlier:
            kept = min(len(replica_sets.active_pods(objects, replica_set)), room)
            _scale(objects, deployment, replica_set, kept)
            room -= kept
            wanted -= kept
        if earlier and wanted < deployment["spec"]["replicas"]:
            note_no_rollout(objects, deployment)
        _scale(objects, deployment, current, wanted)
        _forget(objects, deployment, earlier)
    finally:
        objects.set_status(deployment, _status(objects, deployment, current, earlier))


def _current(objects: Objects, deployment: Object) -> Object:
    """Return the ReplicaSet of the present template; make it if there is none."""
    number = template_hash(deployment["spec"]["template"])
    owned = objects.owned("ReplicaSet", deployment)
    revision = max(map(_revision, owned), default=0)
    for found in owned:
        if found["metadata"].get("labels", {}).get(HASH) != number:
            continue
        if _revision(found) == revision:
            return found
        metadata = found["metadata"]
        annotations = metadata.get("annotations", {}) | {REVISION: str(revision + 1)}
        return objects.update(found | {"metadata": metadata | {"annotations": annotations}})
    return objects.create(_replica_set(deployment, number, revision + 1), deployment)


def _note_revision(objects: Objects, deployment: Object, current: Object) -> Object:
    """Give the Deployment the revision of its ReplicaSet, as `kubectl rollout undo` needs it."""
    metadata, revision = deployment["metadata"], {REVISION: str(_revision(current))}
    annotations = metadata.get("annotations", {})
    if revision.items() <= annotations.items():
        return deployment
    return objects.update(
        deployment | {"metadata": metadata | {"annotations": annotations | revision}}
    )


def _replica_set(deployment: Object, number: str, revision: int) -> Object:
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
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": 0,
            "selector": selector | {"matchLabels": matched},
            "template": template | {"metadata": given | {"labels": labels}},
        },
    }


def _earlier(objects: Objects, deployment: Object, current: Object) -> list[Object]:
    """Return the other ReplicaSets, the newest first."""
    uid = current["metadata"]["uid"]
    others = [o for o in objects.owned("ReplicaSet", deployment) if o["metadata"]["uid"] != uid]
    return sorted(others, key=_revision, reverse=True)


def _scale(objects: Objects, deployment: Object, replica_set: Object, wanted: int) -> None:
    before = replica_set["spec"]["replicas"]
    if before != wanted:
        replica_set = objects.update(
            replica_set | {"spec": replica_set["spec"] | {"replicas": wanted}}
        )
        name, way = replica_set["metadata"]["name"], "up" if wanted > before else "down"
        message = f"Scaled {way} replica set {name} from {before} to {wanted}"
        objects.record(deployment, "Normal", "ScalingReplicaSet", message)
    replica_sets.reconcile(objects, replica_set)


def _forget(objects: Objects, deployment: Object, earlier: list[Object]) -> None:
    """Delete ReplicaSets without pods; `kubectl rollout undo` goes back to those that are kept."""
    empty = [each for each in earlier if not replica_sets.active_pods(objects, each)]
    for replica_set in empty[deployment["spec"]["revisionHistoryLimit"] :]:
        objects.delete(replica_set)


def _revision(replica_set: Object) -> int:
    text = replica_set["metadata"].get("annotations", {}).get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def _status(objects: Objects, deployment: Object, current: Object, earlier: list[Object]) -> Object:
    new = replica_sets.active_pods(objects, current)
    old = [pod for each in earlier for pod in replica_sets.active_pods(objects, each)]
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
        return condition("Progressing", False, "ProgressDeadlineExceeded", EXPLANATION)
    if ready >= wanted:
        message = "All pods have the template of the Deployment and are ready."
        return condition("Progressing", True, "NewReplicaSetAvailable", message)
    message = f"{ready} of {wanted} pods are ready."
    return condition("Progressing", True, "ReplicaSetUpdated", message)
