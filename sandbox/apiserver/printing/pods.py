"""The columns of pods: the state in one word, and the containers in numbers."""

from datetime import datetime

from sandbox.apiserver.printing.table import Column
from sandbox.apiserver.resources.resource import Object


def pod_state(pod: Object) -> str:
    """Return the word under STATUS."""
    status = pod.get("status", {})
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return (
        _container_trouble(status)
        or _gated(status)
        or status.get("reason")
        or status.get("phase", "")
    )


def _ready_containers(pod: Object) -> str:
    """Return READY: ready containers of all containers."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    ready = sum(bool(status.get("ready")) for status in statuses)
    return f"{ready}/{len(pod['spec'].get('containers', ()))}"


def _restarts(pod: Object) -> int:
    """Return how often the containers were restarted, together."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    return sum(int(status.get("restartCount", 0)) for status in statuses)


def _container_trouble(status: Object) -> str:
    for container in status.get("containerStatuses", ()):
        state = container.get("state", {})
        for phase in ("waiting", "terminated"):
            reason = state.get(phase, {}).get("reason")
            if reason:
                return str(reason)
    return ""


def _gated(status: Object) -> str:
    for condition in status.get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return ""


def _readiness_gates(pod: Object, _: datetime) -> str:
    gates = pod.get("spec", {}).get("readinessGates", ())
    if not gates:
        return "<none>"
    conditions = {c.get("type"): c.get("status") for c in pod["status"].get("conditions", ())}
    met = sum(conditions.get(str(gate.get("conditionType"))) == "True" for gate in gates)
    return f"{met}/{len(gates)}"


STATUS = (
    Column(name="Ready", cell=lambda pod, _: _ready_containers(pod)),
    Column(name="Status", cell=lambda pod, _: pod_state(pod)),
    Column(name="Restarts", cell=lambda pod, _: str(_restarts(pod))),
)
READINESS_GATES = Column(name="Readiness Gates", cell=_readiness_gates, wide=True)
