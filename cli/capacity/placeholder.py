"""Placeholder pods: each asks for a node for one pod that waits, in the words of an autoscaler.

An autoscaler adds a node for a pod that kube-scheduler has marked as unschedulable, if no node that
exists suits it by kube-scheduler's own rules. A placeholder asks for what its pod asks for, and not
for a node that exists. Nobody schedules it, and its image is never run. All that is known of a
request is in it: in its status, and in the annotations that it was made with.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from gateway.decisions.capacity import ASKED, COMING, PLACEHOLDER, SCHEDULER
from moorage.models import Pod
from moorage.models.base import LabelSelector
from moorage.models.pod_spec import ContainerPort
from moorage.rules.nodes import matches_labels
from moorage.units.quantity import format_quantity

Manifest = Mapping[str, Any]

POD: Final = "moorage.io/pod"
"""The annotation with the name of the pod that it stands for."""

NEW_NODES, REJECTING = "moorage.io/NewNodes", "moorage.io/RejectingNodes"
"""Conditions whose messages name the nodes that came, and those of them that were rejected too."""

HISTORY: Final = {NEW_NODES: "moorage.io/new-nodes", REJECTING: "moorage.io/rejecting-nodes"}
"""Annotations with the same of an earlier placeholder of the pod."""

NODE_ADDED: Final = "NodeAdded"
NODES_REJECTED: Final = "NodesRejected"
NO_NODE_CAME: Final = "NoNodeCame"
"""Reasons of its condition PodScheduled, beside `ASKED` and `COMING`."""

IMAGE: Final = "moorage/placeholder:never-run"

REVISION: Final = "pod-template-hash"
"""A label by which a ReplicaSet would take a placeholder for its own."""

SELECTING: Final = ("ReplicaSet", "StatefulSet", "Job")
"""Controllers that do not adopt a pod which has some labels of theirs, and not this one."""

BY_LIMIT: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources of which a container may request less than its limit."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """What a placeholder shows.

    Attributes:
        namespace, name, uid: Which placeholder.
        pod: The name of its pod, and `pod_uid` its uid.
        reason: That of its condition PodScheduled; "" if that was not written yet.
        message: The message there.
        created: When it was made, by the API server's clock, in seconds since 1970.
        since: When the condition was written, by the controller's clock.
        nodes: The names of nodes that came for the pod.
        rejecting: Those of them that were rejected as well.
    """

    namespace: str
    name: str
    uid: str
    pod: str
    pod_uid: str
    reason: str
    message: str
    created: float
    since: float
    nodes: tuple[str, ...]
    rejecting: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether the autoscaler reads it, or is about to, or brings its node."""
        return self.reason in ("", ASKED, COMING)


def read_placeholder(manifest: Manifest) -> Placeholder:
    """Return what a placeholder shows."""
    metadata = manifest["metadata"]
    conditions = {
        each.get("type"): each for each in (manifest.get("status") or {}).get("conditions") or ()
    }
    scheduled = conditions.get("PodScheduled") or {}
    notes, owners = metadata.get("annotations") or {}, metadata.get("ownerReferences") or ()

    def names(kind: str) -> tuple[str, ...]:
        text = (conditions.get(kind) or {}).get("message") or notes.get(HISTORY[kind]) or ""
        return tuple(text.split())

    return Placeholder(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        pod=notes.get(POD, ""),
        pod_uid=next((each["uid"] for each in owners if each.get("kind") == "Pod"), ""),
        reason=scheduled.get("reason") or "",
        message=scheduled.get("message") or "",
        created=moment(metadata.get("creationTimestamp")),
        since=moment(scheduled.get("lastTransitionTime") or metadata.get("creationTimestamp")),
        nodes=names(NEW_NODES),
        rejecting=names(REJECTING),
    )


def moment(text: str | None) -> float:
    """Return a time of the API server in seconds since 1970; 0 if it is none."""
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except ValueError:
        return 0.0


def status_patch(placeholder: Placeholder) -> Manifest:
    """Return the strategic merge patch that writes what a placeholder shows into its status."""
    moment = datetime.fromtimestamp(placeholder.since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def condition(kind: str, status: str, reason: str, message: str) -> Manifest:
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": moment,
        }

    conditions = [condition("PodScheduled", "False", placeholder.reason, placeholder.message)]
    for kind, names in ((NEW_NODES, placeholder.nodes), (REJECTING, placeholder.rejecting)):
        if names:
            conditions.append(condition(kind, "True", kind.rpartition("/")[2], " ".join(names)))
    return {"metadata": {"uid": placeholder.uid}, "status": {"conditions": conditions}}


def placeholder_name(pod_uid: str) -> str:
    """Return the name of a pod's placeholder: always the same, so that there are never two."""
    return f"capacity-{pod_uid}"


def placeholder_manifest(
    manifest: Manifest,
    pod: Pod,
    *,
    autoscaler: str,
    requirements: Sequence[Manifest],
    history: Placeholder | None = None,
) -> Manifest:
    """Return the placeholder of a pod.

    Args:
        manifest: The pod, as the API server has it.
        pod: The same.
        autoscaler: Whose words are used.
        requirements: What its node has to have in addition: no node that exists has it.
        history: An earlier placeholder, whose nodes it names.
    """
    metadata, spec = manifest["metadata"], manifest["spec"]
    notes = {POD: metadata["name"]}
    for kind, names in (
        (NEW_NODES, history.nodes if history else ()),
        (REJECTING, history.rejecting if history else ()),
    ):
        if names:
            notes[HISTORY[kind]] = " ".join(names)
    spread = [_across_revisions(each) for each in spec.get("topologySpreadConstraints") or ()]
    affinity = _across_revisions(spec.get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = _required(
        node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution"), requirements
    )
    affinity = {**affinity, "nodeAffinity": node_affinity}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": placeholder_name(metadata["uid"]),
            "namespace": metadata["namespace"],
            "labels": {**_labels(manifest, pod, affinity, spread), PLACEHOLDER: autoscaler},
            "annotations": notes,
            "ownerReferences": [owner],
        },
        "spec": {
            "schedulerName": SCHEDULER,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "placeholder",
                    "image": IMAGE,
                    "resources": _resources(pod.requests),
                    "ports": [_port(each) for each in pod.host_ports],
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
            "volumes": list(_claims(manifest)),
            "nodeSelector": spec.get("nodeSelector") or {},
            "affinity": affinity,
            "tolerations": spec.get("tolerations") or [],
            "topologySpreadConstraints": spread,
        },
    }


def _required(selector: Manifest | None, requirements: Sequence[Manifest]) -> Manifest:
    """Return a node selector with more requirements in each of its terms."""
    terms = [{}] if selector is None else filter(None, selector.get("nodeSelectorTerms") or ())
    added = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *requirements]}
        for term in terms
    ]
    return {"nodeSelectorTerms": added}


def _resources(requests: Mapping[str, int]) -> Manifest:
    """Return what one container requests for all of a pod; of devices the limit is the same."""
    amounts = {name: format_quantity(name, amount) for name, amount in requests.items() if amount}
    limits = {name: text for name, text in amounts.items() if name not in BY_LIMIT}
    return {"requests": amounts, "limits": limits}


def _port(port: ContainerPort) -> Manifest:
    return {
        "containerPort": port.host_port,
        "hostPort": port.host_port,
        "protocol": port.protocol or "TCP",
        **({"hostIP": port.host_ip} if port.host_ip else {}),
    }


def _claims(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the volumes that say in which zone a pod may be: its claims, also those made for it."""
    for volume in manifest["spec"].get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield {"name": volume["name"], "persistentVolumeClaim": claim}
        elif "ephemeral" in volume:
            name = f"{manifest['metadata']['name']}-{volume['name']}"
            yield {"name": volume["name"], "persistentVolumeClaim": {"claimName": name}}


def _across_revisions(value: Any) -> Any:
    """Return constraints without what selects pods of one ReplicaSet alone."""
    if isinstance(value, list):
        kept = [each for each in value if each != REVISION]
        return [
            _across_revisions(each)
            for each in kept
            if not (isinstance(each, dict) and each.get("key") == REVISION)
        ]
    if isinstance(value, dict):
        return {key: _across_revisions(each) for key, each in value.items() if key != REVISION}
    return value


def _labels(manifest: Manifest, pod: Pod, affinity: Manifest, spread: Any) -> Mapping[str, str]:
    """Return those labels of a pod by which its own constraints select it: usually none.

    A PodDisruptionBudget or a Service would count a placeholder that has all labels, and a
    controller could adopt it.
    """
    if pod.owner is not None and pod.owner.kind not in SELECTING:
        return {}
    keys = set[str]()
    for selector in _selectors([*_terms(affinity), *spread]):
        if matches_labels(msgspec.convert(selector, LabelSelector), pod.labels):
            keys |= (selector.get("matchLabels") or {}).keys()
            keys |= {each["key"] for each in selector.get("matchExpressions") or ()}
    labels = manifest["metadata"].get("labels") or {}
    return {key: labels[key] for key in sorted(keys & labels.keys())}


def _terms(affinity: Manifest) -> Iterator[Manifest]:
    for kind in ("podAffinity", "podAntiAffinity"):
        part = affinity.get(kind) or {}
        yield from part.get("requiredDuringSchedulingIgnoredDuringExecution") or ()


def _selectors(constraints: Sequence[Manifest]) -> Iterator[Manifest]:
    for each in constraints:
        if each.get("labelSelector"):
            yield each["labelSelector"]


def to_json(manifest: Manifest) -> bytes:
    """Return an object as it is sent."""
    return json.dumps(manifest).encode()
