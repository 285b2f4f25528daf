"""StatefulSets: pods with numbers, one after another by default."""

from sandbox.apiserver.resources.resource import Object
from sandbox.controllers.objects import (
    MOST_AT_ONCE,
    NO_ROLLOUT,
    Objects,
    is_active,
    is_ready,
    pod_of,
    template_hash,
)

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
REVISION = "controller-revision-hash"


def reconcile(objects: Objects, stateful_set: Object) -> None:
    """Make the missing pods from the lowest number on, or delete those with too high numbers.

    Raises:
        StatusError: The API server refuses a pod.
    """
    spec = stateful_set["spec"]
    revision = f"{stateful_set['metadata']['name']}-{template_hash(spec['template'])}"
    try:
        for pod in objects.pods_of(stateful_set):
            if not is_active(pod):
                objects.delete(pod)
        _complete(objects, stateful_set, revision)
        if _updated(objects.pods_of(stateful_set), revision) < len(objects.pods_of(stateful_set)):
            objects.record(stateful_set, "Warning", "NoRollout", NO_ROLLOUT)
    finally:
        pods = objects.pods_of(stateful_set)
        ready = sum(map(is_ready, pods))
        status = {
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": _updated(pods, revision),
        }
        objects.set_status(stateful_set, status)


def _complete(objects: Objects, stateful_set: Object, revision: str) -> None:
    """Make missing pods; once all are there (and ready, if one waits for another) delete others."""
    spec = stateful_set["spec"]
    start = (spec.get("ordinals") or {}).get("start", 0)
    prefix = f"{stateful_set['metadata']['name']}-"
    pods = {pod["metadata"]["name"]: pod for pod in objects.pods_of(stateful_set)}
    made = 0
    for number in range(start, start + spec["replicas"]):
        pod = pods.pop(f"{prefix}{number}", None)
        if pod is None:
            objects.create(_pod(stateful_set, f"{prefix}{number}", number, revision), stateful_set)
            made += 1
        in_turn = spec["podManagementPolicy"] != "Parallel"
        if made == MOST_AT_ONCE or (in_turn and not (pod and is_ready(pod))):
            return
    for pod in pods.values():
        objects.delete(pod)


def _pod(stateful_set: Object, name: str, number: int, revision: str) -> Object:
    labels = {POD_NAME: name, POD_INDEX: str(number), REVISION: revision}
    pod = pod_of(stateful_set, name=name, labels=labels)
    pod["spec"] |= {"hostname": name, "subdomain": stateful_set["spec"].get("serviceName", "")}
    return pod


def _updated(pods: list[Object], revision: str) -> int:
    return sum(pod["metadata"].get("labels", {}).get(REVISION) == revision for pod in pods)
