"""StatefulSets: pods with numbers, each with claims of its own; one after another by default."""

from sandbox.apiserver.resources.resource import Object
from sandbox.controllers.objects import MOST_AT_ONCE, Objects
from sandbox.controllers.pods import (
    REVISION,
    is_active,
    is_ready,
    pod_of,
    revision_of,
    template_hash,
)
from sandbox.controllers.rollouts import note_no_rollout

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def reconcile(objects: Objects, stateful_set: Object) -> None:
    """Make the missing pods from the lowest number on, or delete those with too high numbers.

    Raises:
        StatusError: The API server refuses a pod or a claim.
    """
    spec = stateful_set["spec"]
    start = (spec.get("ordinals") or {}).get("start", 0)
    numbers = range(start, start + spec["replicas"])
    revision = f"{stateful_set['metadata']['name']}-{template_hash(spec['template'])}"
    try:
        _replace_ended(objects, stateful_set)
        if _complete(objects, stateful_set, numbers, revision):
            _shrink(objects, stateful_set, numbers)
        pods = objects.pods_of(stateful_set)
        if any(revision_of(pod) != revision for pod in pods):
            note_no_rollout(objects, stateful_set)
    finally:
        status = _status(objects.pods_of(stateful_set), revision, stateful_set.get("status", {}))
        objects.set_status(stateful_set, status)


def _replace_ended(objects: Objects, stateful_set: Object) -> None:
    for pod in objects.pods_of(stateful_set):
        if not is_active(pod):
            objects.delete(pod)


def _complete(objects: Objects, stateful_set: Object, numbers: range, revision: str) -> bool:
    """Make missing pods; return whether all are there (and ready, where one waits for another)."""
    pods = {pod["metadata"]["name"]: pod for pod in objects.pods_of(stateful_set)}
    in_parallel = stateful_set["spec"]["podManagementPolicy"] == "Parallel"
    made = 0
    for number in numbers:
        pod = pods.get(_name(stateful_set, number))
        if pod is None:
            _make(objects, stateful_set, number, revision)
            made += 1
        if made == MOST_AT_ONCE or not (in_parallel or (pod and is_ready(pod))):
            return False
    return True


def _make(objects: Objects, stateful_set: Object, number: int, revision: str) -> None:
    name = _name(stateful_set, number)
    labels = {POD_NAME: name, POD_INDEX: str(number), REVISION: revision}
    pod = pod_of(stateful_set, name=name, labels=labels)
    spec = stateful_set["spec"]
    pod["spec"] |= {"hostname": name, "subdomain": spec.get("serviceName", "")}
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", ())}
    for template in spec.get("volumeClaimTemplates", ()):
        claim = f"{template['metadata']['name']}-{name}"
        _claim(objects, stateful_set, template, claim)
        reference = {"claimName": claim}
        volume = template["metadata"]["name"]
        volumes[volume] = {"name": volume, "persistentVolumeClaim": reference}
    if volumes:
        pod["spec"]["volumes"] = list(volumes.values())
    objects.create(pod, stateful_set)


def _claim(objects: Objects, stateful_set: Object, template: Object, name: str) -> None:
    """Make a claim, unless it is there: claims outlive their pods."""
    namespace = stateful_set["metadata"]["namespace"]
    if objects.find("PersistentVolumeClaim", namespace, name):
        return
    selector = stateful_set["spec"].get("selector") or {}
    labels = {**template["metadata"].get("labels", {}), **selector.get("matchLabels", {})}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": labels},
        "spec": template.get("spec", {}),
    }
    objects.create(claim, stateful_set)


def _shrink(objects: Objects, stateful_set: Object, numbers: range) -> None:
    wanted = {_name(stateful_set, number) for number in numbers}
    pods = [p for p in objects.pods_of(stateful_set) if p["metadata"]["name"] not in wanted]
    for pod in sorted(pods, key=_number, reverse=True):
        objects.delete(pod)


def _name(stateful_set: Object, number: int) -> str:
    return f"{stateful_set['metadata']['name']}-{number}"


def _number(pod: Object) -> int:
    text = pod["metadata"]["name"].rpartition("-")[2]
    return int(text) if text.isdecimal() else 0


def _status(pods: list[Object], revision: str, before: Object) -> Object:
    ready = sum(map(is_ready, pods))
    updated = sum(revision_of(pod) == revision for pod in pods)
    complete = updated == len(pods)
    return {
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": len(pods) if complete else len(pods) - updated,
        "updatedReplicas": updated,
        "currentRevision": revision if complete else before.get("currentRevision", revision),
        "updateRevision": revision,
        "collisionCount": 0,
    }
