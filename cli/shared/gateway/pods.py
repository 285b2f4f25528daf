"""Recognizes the pods of Moorage and of kube-schedulers by what their containers run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]

SERVICES = ("gateway", "filter", "scorer", "binder")
"""The words in commands of containers by which processes of Moorage are known."""

SCHEDULER = "kube-scheduler"

ADMIN = "admin"
"""The name of the admin port."""

PROBES = ("readinessProbe", "livenessProbe", "startupProbe")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminPort:
    """The admin port of a container.

    Attributes:
        namespace: The pod's namespace.
        name: The pod's name.
        port: The number of the port.
        is_secured: Whether it is HTTPS, as the probes of the container show.
    """

    namespace: str
    name: str
    port: int
    is_secured: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def containers_of(pod: Object) -> Sequence[Object]:
    """Return the containers of a pod, sidecars too."""
    spec = pod["spec"]
    return [*spec.get("containers", ()), *(spec.get("initContainers") or ())]


def words_of(container: Object) -> list[str]:
    """Return the command line of a container."""
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def services_in(pod: Object) -> Iterator[tuple[str, Object]]:
    """Yield the services of Moorage that a pod runs, each with its container."""
    for container in containers_of(pod):
        words = words_of(container)
        for service in SERVICES:
            if service in words or f"services.{service}" in words:
                yield service, container
                break


def runs(pod: Object, service: str) -> bool:
    """Whether a pod runs a service of Moorage."""
    return any(name == service for name, _ in services_in(pod))


def scheduler_in(pod: Object) -> Object | None:
    """Return the container of a kube-scheduler, None if there is none."""
    return next((each for each in containers_of(pod) if _is_scheduler(each)), None)


def is_active(pod: Object) -> bool:
    """Whether a pod runs and is not about to end."""
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Running" and not pod["metadata"].get("deletionTimestamp")


def is_ready(pod: Object) -> bool:
    """Whether a pod is ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def name_of(obj: Object) -> str:
    """Return an object's name with its namespace, if it has one."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def admin_port(pod: Object, container: Object) -> AdminPort | None:
    """Return the admin port of a container, None if it has none."""
    ports = {each.get("name"): each["containerPort"] for each in container.get("ports") or ()}
    if ADMIN not in ports:
        return None
    return AdminPort(
        namespace=pod["metadata"]["namespace"],
        name=pod["metadata"]["name"],
        port=ports[ADMIN],
        is_secured=is_secured(container),
    )


def is_secured(container: Object) -> bool:
    """Whether a probe of a container is HTTPS; a sidecar has no readiness probe of its own."""
    probes = (container.get(kind) or {} for kind in PROBES)
    return any((probe.get("httpGet") or {}).get("scheme") == "HTTPS" for probe in probes)


def _is_scheduler(container: Object) -> bool:
    words = words_of(container)
    image = str(container.get("image", "")).partition("@")[0]
    program = words[0].rpartition("/")[2] if words else ""
    return SCHEDULER in (program, image.rpartition("/")[2].partition(":")[0])
