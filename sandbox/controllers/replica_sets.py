"""ReplicaSets: a number of pods that are all alike."""

from sandbox.apiserver.resources.resource import Object
from sandbox.controllers.objects import MOST_AT_ONCE, Objects
from sandbox.controllers.pods import is_active, is_ready, pod_of, worth


def reconcile(objects: Objects, replica_set: Object) -> None:
    """Make or delete pods until there are as many as wanted.

    Raises:
        StatusError: The API server refuses a pod.
    """
    missing = replica_set["spec"]["replicas"] - len(active_pods(objects, replica_set))
    try:
        for _ in range(min(missing, MOST_AT_ONCE)):
            prefix = f"{replica_set['metadata']['name']}-"
            objects.create(pod_of(replica_set, generateName=prefix), replica_set)
        if missing < 0:
            for pod in sorted(active_pods(objects, replica_set), key=worth)[:-missing]:
                objects.delete(pod)
    finally:
        objects.set_status(replica_set, _status(active_pods(objects, replica_set)))


def active_pods(objects: Objects, replica_set: Object) -> list[Object]:
    """Return the pods that count: a pod that has ended is replaced."""
    return list(filter(is_active, objects.pods_of(replica_set)))


def _status(pods: list[Object]) -> Object:
    ready = sum(map(is_ready, pods))
    return {
        "replicas": len(pods),
        "fullyLabeledReplicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
