"""Binding a pod to a node: the checks of the real API server, in its order and in its words."""

from typing import Any

from sandbox.apiserver.errors import StatusError, bad_request, conflict
from sandbox.apiserver.resources.table import Object, Target
from sandbox.apiserver.store.cluster import EmbeddedCluster, check_preconditions
from sandbox.apiserver.store.store import now, stamp


def bind(cluster: EmbeddedCluster, pod: Target, binding: Object, *, dry_run: bool = False) -> None:
    """Assign the pod to the binding's target; the node need not exist.

    `pod` comes from the URL: without a name it is the legacy route, where the name is the binding's
    and its UID is ignored.

    Raises:
        StatusError: 400, 404, 409, or 500 for a target that is not a node.
    """
    metadata = binding["metadata"]
    legacy = not pod.name
    name = metadata.get("name", "")
    if not legacy and name != pod.name:
        raise bad_request("name in URL does not match name in Binding object")
    if metadata.get("namespace", pod.space) != pod.space:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    node = _node_of(binding.get("target", {}))
    pod = Target(resource=pod.resource, namespace=pod.namespace, name=name)
    there = cluster.get(pod).object["metadata"]
    if not legacy:
        uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
        check_preconditions(pod, there, uid=uid, version=version)
    _assign(cluster, pod, node, metadata, dry_run=dry_run)


def _node_of(target: Any) -> str:
    if not isinstance(target, dict):
        raise bad_request("Binding: target must be an object")
    kind, name = target.get("kind", ""), target.get("name", "")
    # Kubernetes answers 500 here, because the binding's validation is not an API error.
    if kind not in ("", "Node"):
        text = f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        raise StatusError(500, text, reason="")
    if not name or not isinstance(name, str):
        raise StatusError(500, "target.name: Required value", reason="")
    return name


def _assign(
    cluster: EmbeddedCluster, target: Target, node: str, metadata: Object, *, dry_run: bool
) -> None:
    pod = cluster.get(target).object
    if problem := _obstacle(pod, target.name):
        raise conflict("pods/binding", target.name, problem)
    if dry_run:
        return
    cluster.store.put(target.resource.stored_as, _assigned(pod, node, metadata))


def _obstacle(pod: Object, name: str) -> str:
    spec = pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _assigned(pod: Object, node: str, metadata: Object) -> Object:
    merged = dict(pod["metadata"])
    for key in ("annotations", "labels"):
        if metadata.get(key):
            merged[key] = {**merged.get(key, {}), **metadata[key]}
    status = {k: v for k, v in pod["status"].items() if k != "nominatedNodeName"}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(now())}
    conditions = {condition.get("type"): condition for condition in status.get("conditions", ())}
    status["conditions"] = [*(conditions | {"PodScheduled": scheduled}).values()]
    return pod | {
        "metadata": merged | {"generation": merged.get("generation", 0) + 1},
        "spec": pod["spec"] | {"nodeName": node},
        "status": status,
    }
