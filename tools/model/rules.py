"""What always holds. Each rule has a name, and says which objects break it."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from services.binder.binding.fence import Fence
from tools.model.api import DEVICE, Api
from tools.model.gateway import ModelGateway


class BrokenError(AssertionError):
    """A rule does not hold.

    Attributes:
        name: Of the rule.
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name


def one_pod_of_a_kind_on_a_node(api: Api) -> Iterator[str]:
    """Yield nodes, and devices of nodes, with two pods of which the plugins allow one."""
    bound = defaultdict(list)
    for pod in api.pods.values():
        kind, device = pod.spec.scheduler_name, pod.annotations.get(DEVICE, "")
        if pod.spec.node_name:
            bound[kind, pod.spec.node_name, device].append(pod.name)
            if kind == "devices" and not device:
                yield f"{pod.name} on {pod.spec.node_name} has no device"
    for (kind, node, device), pods in sorted(bound.items()):
        if len(pods) > 1:
            yield f"{', '.join(pods)} of profile {kind} are all on {node} {device}"


def each_pod_is_written_once(api: Api) -> Iterator[str]:
    """Yield pods with two Bindings."""
    uids = [write.uid for write in api.writes]
    yield from sorted({f"{uid} was bound twice" for uid in uids if uids.count(uid) > 1})


def nothing_is_sent_after_a_barrier(api: Api) -> Iterator[str]:
    """Yield POSTs of lower epochs than that of a barrier that was answered before."""
    yield from api.late


def no_pod_is_on_a_node_that_never_was(api: Api) -> Iterator[str]:
    """Yield pods on nodes that nobody has created."""
    nodes = {event.node.name for event in api.events if event.node is not None}
    for pod in api.pods.values():
        if pod.spec.node_name and pod.spec.node_name not in nodes:
            yield f"{pod.name} on {pod.spec.node_name}"


OF_API: Sequence[Callable[[Api], Iterator[str]]] = (
    one_pod_of_a_kind_on_a_node,
    each_pod_is_written_once,
    nothing_is_sent_after_a_barrier,
    no_pod_is_on_a_node_that_never_was,
)


def what_is_bound_counts(gateway: ModelGateway, api: Api, fence: Fence) -> Iterator[str]:
    """Yield bound pods that the gateway of the newest term does not count on their nodes."""
    if not gateway.term.is_active or gateway.term.epoch != fence.epoch:
        return
    for write in api.writes:
        pod, counted = api.pods.get(write.uid), gateway.state.place_of(write.uid)
        if pod is not None and counted != write.node:
            yield (
                f"the gateway of epoch {gateway.term.epoch} counts {pod.name} on "
                f"{counted or 'no node'}, which was bound to {write.node} in epoch {write.epoch}"
            )


def the_replica_equals_the_state(gateway: ModelGateway) -> Iterator[str]:
    """Yield differences, once the replica has followed."""
    snapshot, state = gateway.phase.replica.snapshot, gateway.state
    if {node.name for node in snapshot.nodes()} != set(state.rows.of):
        yield f"nodes {[node.name for node in snapshot.nodes()]}, not {sorted(state.rows.of)}"
    for node in snapshot.nodes():
        for pod in node.pods:
            if state.place_of(pod.uid) != node.name:
                yield f"{pod.name} on {node.name}, not {state.place_of(pod.uid) or 'nowhere'}"
    placed = sum(node in state.rows.of for node in state.places.values())
    if snapshot.pod_count != placed:
        yield f"{snapshot.pod_count} pods, not {placed}"


def in_the_end_the_view_is_the_truth(gateway: ModelGateway, api: Api) -> Iterator[str]:
    """Yield what differs from the API server once all events and all times are over."""
    state = gateway.state
    for uid, pod in api.pods.items():
        if state.place_of(uid) != pod.spec.node_name:
            yield f"{pod.name} on {state.place_of(uid) or 'no node'}, not {pod.spec.node_name}"
    if set(state.rows.of) != set(api.nodes):
        yield f"nodes {sorted(state.rows.of)}, not {sorted(api.nodes)}"
    bound = sum(bool(pod.spec.node_name) for pod in api.pods.values())
    if state.counts["pods"] != bound:
        yield f"{state.counts['pods']} pods have a place, not {bound}"


def hold(name: str, problems: Iterator[str]) -> None:
    """Raise BrokenError if there are problems."""
    if found := list(problems):
        raise BrokenError(name.replace("_", " "), "; ".join(found))
