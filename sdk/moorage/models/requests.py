"""What a pod asks of its node, computed as kube-scheduler does.

`Pod.requests`, `Pod.nonzero_requests` and `Pod.host_ports` call this; everything that compares pods
with nodes builds on those. Limits are not read: the API server has copied them into requests.

While a pod is resized in place, its spec says what it is to have, and its status what its node has
set aside for it. On the node it counts with the largest total of the three: as specified, as
allocated, as actuated; without the spec while the resize is infeasible there. `counted` works that
out when a pod is read. Few pods are being resized, so nothing of the others' statuses is kept.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from moorage.models.base import NOTHING, Model, read_only
from moorage.models.interning import ValueCache
from moorage.models.pod_spec import Container, ContainerPort, PodSpec, Resources
from moorage.units.quantity import INT64_MAX, Quantity, QuantityError, scaled, scaled_by

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
    return _with_own(_of_containers(spec, defaults), spec, spec.resources.requests)


def _of_containers(spec: PodSpec, defaults: Mapping[str, int]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, _container_requests(container, defaults))
    if spec.init_containers:
        _apply_init_containers(total, spec.init_containers, defaults)
    return total


def _with_own(total: dict[str, int], spec: PodSpec, own: Mapping[str, Quantity]) -> dict[str, int]:
    for resource, value in own.items():
        if _is_pod_level(resource):
            total[resource] = scaled(resource, value)
    for resource, value in spec.overhead.items():
        total[resource] = min(total.get(resource, 0) + scaled(resource, value), INT64_MAX)
    return total


class ContainerStatus(Model, frozen=True):
    """What a node has set aside for a container."""

    name: str = ""
    allocated_resources: Mapping[str, Quantity] | None = None
    resources: Resources | None = None


class Actual(Model, frozen=True):
    """What a node has set aside for a pod."""

    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: Mapping[str, Quantity] | None = None
    resources: Resources | None = None


class Counted(Model, frozen=True):
    """What a pod that is resized counts on its node, as `Pod.requests` says it."""

    requests: Mapping[str, int] = NOTHING
    nonzero_requests: Mapping[str, int] = NOTHING


def counted(spec: PodSpec, actual: Actual, *, infeasible: bool) -> Counted | None:
    """Return what a pod counts on its node; None if that is what its spec says.

    Args:
        spec: The spec.
        actual: What the pod's status says.
        infeasible: Whether the node can never have what the spec says.
    """
    # Nearly all statuses say what the spec says in the same words; this runs for each event.
    containers, own = (*spec.containers, *spec.init_containers), spec.resources.requests
    statuses = (*(actual.init_container_statuses or ()), *(actual.container_statuses or ()))
    by_name = {each.name: (each.allocated_resources, each.resources) for each in statuses}
    differs = infeasible
    for container in containers:
        allocated, actuated = by_name.get(container.name, (None, None))
        given = container.resources.requests
        differs = differs or allocated not in (None, given)
        differs = differs or (actuated is not None and actuated.requests not in (NOTHING, given))
    if not own and len(containers) == 1:
        own = containers[0].resources.requests
    pod_level = actual.resources.requests if actual.resources is not None else NOTHING
    if not differs and actual.allocated_resources in (None, own) and pod_level in (NOTHING, own):
        return None
    parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead)
    found = _counted.get((*parts, actual, infeasible), (spec, actual, infeasible))
    return None if found is AS_SPECIFIED else found


AS_SPECIFIED: Final = Counted()
"""Of a pod that counts what its spec says."""


def _count(parts: tuple[PodSpec, Actual, bool]) -> Counted:
    spec, actual, infeasible = parts
    try:
        requests = _total_on_node(spec, actual, infeasible, NOTHING)
        defaults = DEFAULT_REQUESTS
        if any(map(_is_pod_level, spec.resources.requests)):
            defaults = {name: size for name, size in defaults.items() if name not in requests}
        total = _total_on_node(spec, actual, infeasible, defaults)
        nonzero = {"cpu": total.get("cpu", 0), "memory": total.get("memory", 0)}
        if requests == pod_requests(spec) and nonzero == nonzero_requests(spec):
            return AS_SPECIFIED
    except QuantityError:
        return AS_SPECIFIED  # whoever reads the spec says so
    return Counted(requests=read_only(requests), nonzero_requests=read_only(nonzero))


_counted: ValueCache[tuple[PodSpec, Actual, bool], Counted] = ValueCache(_count)


def _total_on_node(
    spec: PodSpec, actual: Actual, infeasible: bool, defaults: Mapping[str, int]
) -> dict[str, int]:
    allocated, actuated = actual.allocated_resources, NOTHING
    own = spec.resources.requests
    if actual.resources is not None:
        actuated = actual.resources.requests
        own = {} if infeasible else dict(own)
        for amounts in (actuated, allocated or NOTHING):
            for name, amount in amounts.items():
                if name not in own or scaled(name, amount) > scaled(name, own[name]):
                    own[name] = amount
    total = {} if infeasible else _of_containers(spec, defaults)
    if allocated is not None and actuated:  # these are sums over all containers
        for amounts in (allocated, actuated):
            _raise_to(total, {name: scaled(name, amount) for name, amount in amounts.items()})
    else:
        for is_allocated in (True, False):
            variant = _as_set_aside(spec, actual, infeasible, is_allocated)
            _raise_to(total, _of_containers(variant, defaults))
    return _with_own(total, spec, own if any(map(_is_pod_level, spec.resources.requests)) else {})


def _as_set_aside(spec: PodSpec, actual: Actual, infeasible: bool, is_allocated: bool) -> PodSpec:
    """Return a spec with what is allocated, or actuated, for each container."""
    statuses = (*(actual.init_container_statuses or ()), *(actual.container_statuses or ()))
    found = {each.name: each for each in statuses}

    def of(container: Container) -> Container:
        status = found.get(container.name)
        requests = NOTHING if infeasible else container.resources.requests
        if status is not None and status.allocated_resources is not None:
            requests = status.allocated_resources
        if status is not None and status.resources is not None and not is_allocated:
            requests = status.resources.requests or requests
        return replace(container, resources=Resources(requests=requests))

    return replace(
        spec,
        containers=tuple(map(of, spec.containers)),
        init_containers=tuple(map(of, spec.init_containers)),
    )


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
"""Returns the demands of a spec."""
