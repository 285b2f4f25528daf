"""The state of a pod in one word, as `kubectl get pods` shows it; its containers in numbers."""

from sandbox.apiserver.store import Object


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


def ready_containers(pod: Object) -> str:
    """Return READY: ready containers of all containers."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    ready = sum(bool(status.get("ready")) for status in statuses)
    return f"{ready}/{len(pod['spec'].get('containers', ()))}"


def restarts(pod: Object) -> int:
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
