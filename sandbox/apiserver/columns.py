"""What `kubectl get` shows of each resource, with -o wide or without."""

from datetime import datetime
from typing import Any

from sandbox.apiserver.podstate import pod_state, ready_containers, restarts
from sandbox.apiserver.store import Object
from sandbox.apiserver.tables import Cell, Column
from sandbox.apiserver.times import age
from sandbox.apiserver.workloads import claim, ready_replicas

NODE_ROLE = "node-role.kubernetes.io/"


def _at(path: str, default: str = "<none>") -> Cell:
    keys = path.split(".")

    def cell(obj: Object, _: datetime) -> Any:
        value: Any = obj
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return default if value in (None, "") else value

    return cell


def _age_of(path: str) -> Cell:
    read = _at(path, "")
    return lambda obj, now: age(read(obj, now), now)


NAME = Column(name="Name", cell=_at("metadata.name"))
AGE = Column(name="Age", cell=_age_of("metadata.creationTimestamp"))


def _node_status(node: Object, _: datetime) -> str:
    conditions = {
        c.get("type"): c.get("status") for c in node.get("status", {}).get("conditions", ())
    }
    ready = {"True": "Ready", None: "Unknown"}.get(conditions.get("Ready"), "NotReady")
    unschedulable = node.get("spec", {}).get("unschedulable")
    return f"{ready},SchedulingDisabled" if unschedulable else ready


def _node_roles(node: Object, _: datetime) -> str:
    labels = node["metadata"].get("labels", {})
    roles = {key.removeprefix(NODE_ROLE) for key in labels if key.startswith(NODE_ROLE)}
    roles |= {labels[key] for key in ("kubernetes.io/role",) if labels.get(key)}
    return ",".join(sorted(roles - {""})) or "<none>"


def _node_address(kind: str) -> Cell:
    def cell(node: Object, _: datetime) -> str:
        addresses = node.get("status", {}).get("addresses", ())
        return next((a["address"] for a in addresses if a.get("type") == kind), "<none>")

    return cell


def _readiness_gates(pod: Object, _: datetime) -> str:
    gates = pod.get("spec", {}).get("readinessGates", ())
    if not gates:
        return "<none>"
    conditions = {c.get("type"): c.get("status") for c in pod["status"].get("conditions", ())}
    met = sum(conditions.get(gate.get("conditionType")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"


def _event_object(event: Object, _: datetime) -> str:
    about = event.get("involvedObject", {})
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(event: Object, _: datetime) -> str:
    source = event.get("source", {})
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host") or event.get("reportingInstance", "")
    return f"{component}, {host}" if host else component


def _event_last(event: Object, now: datetime) -> str:
    series = event.get("series", {}).get("lastObservedTime")
    return age(series or event.get("lastTimestamp") or event.get("eventTime"), now)


def _event_first(event: Object, now: datetime) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def _event_count(event: Object, _: datetime) -> int:
    return int(event.get("series", {}).get("count") or event.get("count") or 1)


def _message(event: Object, _: datetime) -> str:
    return str(event.get("message", "")).strip()


OBJECT = (NAME, AGE)
NODES = (
    NAME,
    Column(name="Status", cell=_node_status),
    Column(name="Roles", cell=_node_roles),
    AGE,
    Column(name="Version", cell=_at("status.nodeInfo.kubeletVersion", "")),
    Column(name="Internal-IP", cell=_node_address("InternalIP"), wide=True),
    Column(name="External-IP", cell=_node_address("ExternalIP"), wide=True),
    Column(name="OS-Image", cell=_at("status.nodeInfo.osImage", "<unknown>"), wide=True),
    Column(
        name="Kernel-Version", cell=_at("status.nodeInfo.kernelVersion", "<unknown>"), wide=True
    ),
    Column(
        name="Container-Runtime",
        cell=_at("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
        wide=True,
    ),
)
PODS = (
    NAME,
    Column(name="Ready", cell=lambda pod, _: ready_containers(pod)),
    Column(name="Status", cell=lambda pod, _: pod_state(pod)),
    Column(name="Restarts", cell=lambda pod, _: str(restarts(pod))),
    AGE,
    Column(name="IP", cell=_at("status.podIP"), wide=True),
    Column(name="Node", cell=_at("spec.nodeName"), wide=True),
    Column(name="Nominated Node", cell=_at("status.nominatedNodeName"), wide=True),
    Column(name="Readiness Gates", cell=_readiness_gates, wide=True),
)
NAMESPACES = (NAME, Column(name="Status", cell=_at("status.phase", "")), AGE)
EVENTS = (
    Column(name="Last Seen", cell=_event_last),
    Column(name="Type", cell=_at("type", "")),
    Column(name="Reason", cell=_at("reason", "")),
    Column(name="Object", cell=_event_object),
    Column(name="Subobject", cell=_at("involvedObject.fieldPath", ""), wide=True),
    Column(name="Source", cell=_event_source, wide=True),
    Column(name="Message", cell=_message),
    Column(name="First Seen", cell=_event_first, wide=True),
    Column(name="Count", cell=_event_count, wide=True),
    Column(name="Name", cell=_at("metadata.name"), wide=True),
)
LEASES = (NAME, Column(name="Holder", cell=_at("spec.holderIdentity", "")), AGE)
PRIORITY_CLASSES = (
    NAME,
    Column(name="Value", cell=_at("value"), type="integer"),
    Column(name="Global-Default", cell=_at("globalDefault", "false"), type="boolean"),
    AGE,
    Column(name="PreemptionPolicy", cell=_at("preemptionPolicy", "")),
)
STATEFUL_SETS = (NAME, Column(name="Ready", cell=ready_replicas), AGE)
VOLUMES = (
    NAME,
    Column(name="Capacity", cell=_at("spec.capacity.storage", "")),
    Column(name="Reclaim Policy", cell=_at("spec.persistentVolumeReclaimPolicy", "")),
    Column(name="Status", cell=_at("status.phase", "")),
    Column(name="Claim", cell=claim),
    Column(name="StorageClass", cell=_at("spec.storageClassName", "")),
    AGE,
)
CLAIMS = (
    NAME,
    Column(name="Status", cell=_at("status.phase", "")),
    Column(name="Volume", cell=_at("spec.volumeName", "")),
    Column(name="Capacity", cell=_at("status.capacity.storage", "")),
    Column(name="StorageClass", cell=_at("spec.storageClassName", "")),
    AGE,
)
