"""What a pod asks of its node, computed as kube-scheduler does.

`Pod.requests`, `Pod.nonzero_requests` and `Pod.host_ports` call this; everything that compares pods
with nodes builds on those. Limits are not read: the API server has copied them into requests.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from moorage.models.base import NOTHING, read_only
from moorage.models.interning import ValueCache
from moorage.models.pod_spec import Container, ContainerPort, PodSpec
from moorage.units.quantity import INT64_MAX, scaled, scaled_by

DEFAULT_REQUESTS: Final[Mapping[str, int]] = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a container is taken to need, for scoring only, where it requests nothing."""


class Demands(NamedTuple):
    """What the containers of a pod need of its node; see the properties of `Pod`."""

    requests: Mapping[str, int]
    nonzero_requests: Mapping[str, int]
    host_ports: tuple[ContainerPort, ...]


def pod_requests(spec: PodSpec) -> dict[str, int]:
    """Return what the pod needs: millicores of "cpu", bytes or counts of everything else.

    That is the larger of all that runs together and of each step of initialisation, where what the
    pod itself requests takes precedence over its containers, plus overhead.

    Raises:
        moorage.units.quantity.QuantityError: A request is not a quantity.
    """
    return _total(spec, NOTHING)


def nonzero_requests(spec: PodSpec) -> dict[str, int]:
    """Return "cpu" and "memory" with `DEFAULT_REQUESTS` for containers that do not mention them.

    kube-scheduler scores nodes by these, so that pods without requests still count. An explicit
    request of 0 stays 0. A pod with requests of its own gets a default only for what neither it nor
    any of its containers mentions.

    Raises:
        moorage.units.quantity.QuantityError: A request is not a quantity.
    """
    defaults = DEFAULT_REQUESTS
    if spec.resources.requests and any(map(_is_pod_level, spec.resources.requests)):
        mentioned = pod_requests(spec)
        defaults = {name: size for name, size in defaults.items() if name not in mentioned}
    total = _total(spec, defaults)
    return {"cpu": total.get("cpu", 0), "memory": total.get("memory", 0)}


def _total(spec: PodSpec, defaults: Mapping[str, int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, _container_requests(container, defaults))
    if spec.init_containers:
        _apply_init_containers(total, spec.init_containers, defaults)
    for resource, value in spec.resources.requests.items():
        if _is_pod_level(resource):
            total[resource] = scaled(resource, value)
    for resource, value in spec.overhead.items():
        total[resource] = min(total.get(resource, 0) + scaled(resource, value), INT64_MAX)
    return total


def _container_requests(container: Container, defaults: Mapping[str, int]) -> dict[str, int]:
    total = dict(defaults)
    for resource, value in container.resources.requests.items():
        total[resource] = scaled_by(resource == "cpu", value)
    return total


def _apply_init_containers(
    total: dict[str, int], containers: tuple[Container, ...], defaults: Mapping[str, int]
) -> None:
    # Sidecars keep running, so they add to the total and to every step that comes after them.
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in containers:
        step = _container_requests(container, defaults)
        _add(step, sidecars)
        if _is_sidecar(container):
            _add(total, _container_requests(container, defaults))
            sidecars = step
        _raise_to(peak, step)
    _raise_to(total, peak)


def _is_sidecar(init_container: Container) -> bool:
    return init_container.restart_policy == "Always"


def _is_pod_level(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for resource, amount in more.items():
        total[resource] = min(total.get(resource, 0) + amount, INT64_MAX)


def _raise_to(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for resource, amount in floor.items():
        if amount > total.get(resource, 0) or resource not in total:
            total[resource] = amount


class _CachedDemands:
    """Caches demands by all that they depend on, since the pods of a workload need the same.

    A cycle reads those of its pod many times, so the latest are kept apart. Pods do not keep their
    own: for 150,000 of them that took 35 MB, and as many objects for the garbage collector.

    Attributes:
        latest: The spec that was asked about last, and its demands.
    """

    def __init__(self) -> None:
        self._by_parts: ValueCache[PodSpec, Demands] = ValueCache(_computed)
        self.latest: tuple[PodSpec | None, Demands] = (None, Demands(NOTHING, NOTHING, ()))

    def __call__(self, spec: PodSpec) -> Demands:
        latest, demands = self.latest
        if latest is not spec:
            parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead)
            demands = self._by_parts.get(parts, spec)
            self.latest = (spec, demands)
        return demands


def _computed(spec: PodSpec) -> Demands:
    running, ports = spec.containers, list[ContainerPort]()
    if spec.init_containers:
        running = (*running, *filter(_is_sidecar, spec.init_containers))
    for container in running:
        for port in container.ports:
            if port.host_port > 0:
                ports.append(port)
    if len(running) == 1 and not (spec.init_containers or spec.overhead or spec.resources.requests):
        requests = _container_requests(running[0], NOTHING)  # most pods are that simple
        nonzero = dict(DEFAULT_REQUESTS)
        for name in nonzero:
            if name in requests:
                nonzero[name] = requests[name]
    else:
        requests, nonzero = pod_requests(spec), nonzero_requests(spec)
    return Demands(read_only(requests), read_only(nonzero), tuple(ports))


demands_of = _CachedDemands()
