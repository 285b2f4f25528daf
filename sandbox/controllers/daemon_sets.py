"""DaemonSets: one pod on each node that would take it."""

from itertools import islice

import msgspec

from moorage.models import NodeManifest, Pod
from moorage.models.decoding.codec import decode_node, decode_pod
from moorage.rules import matches_node_selector
from moorage.rules.taints import DO_NOT_SCHEDULE, untolerated
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

_TOLERATED = {
    "not-ready": "NoExecute",
    "unreachable": "NoExecute",
    "disk-pressure": "NoSchedule",
    "memory-pressure": "NoSchedule",
    "pid-pressure": "NoSchedule",
    "unschedulable": "NoSchedule",
}
"""Taints of nodes that pods of DaemonSets always tolerate, with their effects."""


def reconcile(objects: Objects, daemon_set: Object) -> None:
    """Make the pods that nodes lack, and delete those whose node is gone or does not take them.

    Raises:
        StatusError: The API server refuses a pod.
    """
    revision = template_hash(daemon_set["spec"]["template"])
    wanted = _suitable_nodes(objects, daemon_set)
    try:
        pods = {}
        for pod in objects.pods_of(daemon_set):
            place = _place(pod)
            if not is_active(pod) or place not in wanted or place in pods:
                objects.delete(pod)
            else:
                pods[place] = pod
        missing = (node for node in wanted if node not in pods)
        for node in islice(missing, MOST_AT_ONCE):
            objects.create(_pod(daemon_set, node, revision), daemon_set)
        if any(revision_of(pod) != revision for pod in objects.pods_of(daemon_set)):
            note_no_rollout(objects, daemon_set)
    finally:
        status = _status(objects.pods_of(daemon_set), len(wanted), revision)
        objects.set_status(daemon_set, status)


def _suitable_nodes(objects: Objects, daemon_set: Object) -> dict[str, None]:
    template = _pod(daemon_set, "", "")
    # The node selector of the template counts here, not the node that the pod is for.
    template["spec"]["affinity"] = (daemon_set["spec"]["template"].get("spec") or {}).get(
        "affinity"
    )
    pod = decode_pod(msgspec.json.encode(template))
    nodes = (decode_node(msgspec.json.encode(node)) for node in objects.all("Node"))
    return {node.name: None for node in nodes if _suits(pod, node)}


def _suits(pod: Pod, node: NodeManifest) -> bool:
    spec, labels = pod.spec, node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity and affinity.required and not matches_node_selector(affinity.required, node):
        return False
    return untolerated(node.spec.taints, spec.tolerations, DO_NOT_SCHEDULE) is None


def _pod(daemon_set: Object, node: str, revision: str) -> Object:
    prefix = f"{daemon_set['metadata']['name']}-"
    pod = pod_of(daemon_set, generateName=prefix, labels={REVISION: revision})
    spec = pod["spec"]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = spec.get("affinity") or {}
    wishes = (affinity.get("nodeAffinity") or {}) | {
        "requiredDuringSchedulingIgnoredDuringExecution": required
    }
    spec["affinity"] = affinity | {"nodeAffinity": wishes}
    spec["tolerations"] = [
        *spec.get("tolerations", ()),
        *(
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
            for key, effect in _TOLERATED.items()
        ),
    ]
    return pod


def _place(pod: Object) -> str:
    """Return the node that the pod was made for."""
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])


def _status(pods: list[Object], wanted: int, revision: str) -> Object:
    ready = sum(map(is_ready, pods))
    return {
        "desiredNumberScheduled": wanted,
        "currentNumberScheduled": len(pods),
        "updatedNumberScheduled": sum(revision_of(pod) == revision for pod in pods),
        "numberMisscheduled": 0,
        "numberReady": ready,
        "numberAvailable": ready,
        "numberUnavailable": wanted - ready,
    }
