"""The in-tree filters: what a node must offer before an extender hears of it.

In kube-scheduler's order: NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts,
NodeResourcesFit. (NodeName has nothing to do: a pod with a node never comes here.)
"""

from collections.abc import Callable

from moorage.models import ContainerPort, Pod, Taint
from moorage.rules import matches_node_selector
from moorage.rules.taints import DO_NOT_SCHEDULE, tolerates, untolerated
from sandbox.scheduler.cache import NodeInfo
from sandbox.scheduler.config import Profile
from sandbox.scheduler.verdicts import Refusal

Filter = Callable[[NodeInfo], Refusal | None]

UNSCHEDULABLE = Refusal(("node(s) were unschedulable",), unresolvable=True)
TAINTED = Refusal(("node(s) had untolerated taint(s)",), unresolvable=True)
NO_AFFINITY = Refusal(("node(s) didn't match Pod's node affinity/selector",), unresolvable=True)
NO_PORTS = Refusal(("node(s) didn't have free ports for the requested pod ports",))
TOO_MANY_PODS = "Too many pods"

_UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


# What nodes that are neither cordoned nor tainted need not be asked.
_ABOUT_SPECIAL_NODES = frozenset(("NodeUnschedulable", "TaintToleration"))


class Checks:
    """The filters that have something to say about one pod."""

    def __init__(self, checks: list[tuple[str, Filter]]) -> None:
        self._for_special = checks
        self._for_usual = [c for c in checks if c[0] not in _ABOUT_SPECIAL_NODES]

    def refusal(self, node: NodeInfo) -> tuple[str, Refusal] | None:
        """Return the first "no" with its plugin's name, or None if the node fits."""
        for name, check in self._for_special if node.is_special else self._for_usual:
            if no := check(node):
                return name, no
        return None


class Filters:
    """The in-tree filters that a profile runs."""

    def __init__(self, profile: Profile, ignored_resources: frozenset[str]) -> None:
        self._ignored = ignored_resources
        makers = (
            ("NodeUnschedulable", _node_unschedulable),
            ("TaintToleration", _taint_toleration),
            ("NodeAffinity", _node_affinity),
            ("NodePorts", _node_ports),
            ("NodeResourcesFit", self._resources),
        )
        self._makers = [(name, make) for name, make in makers if profile.filters_with(name)]

    def prepare(self, pod: Pod) -> Checks:
        """Return what is to be checked for this pod, in order."""
        made = ((name, make(pod)) for name, make in self._makers)
        return Checks([(name, check) for name, check in made if check])

    def _resources(self, pod: Pod) -> Filter:
        wanted = [
            (resource, amount)
            for resource, amount in pod.requests.items()
            if amount > 0 and resource not in self._ignored
        ]
        wanted.sort(key=lambda want: _RESOURCE_ORDER.get(want[0], len(_RESOURCE_ORDER)))

        def check(node: NodeInfo) -> Refusal | None:
            free = node.free
            if node.free_pods > 0:
                for resource, amount in wanted:
                    if amount > free.get(resource, 0):
                        break
                else:
                    return None
            return _shortage(node, wanted)

        return check


def named_nodes(pod: Pod) -> frozenset[str] | None:
    """Return the only nodes that a pod (of a DaemonSet, usually) accepts, None if it names none."""
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    if not required or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        fields = [r for r in term.match_fields if r.key == "metadata.name" and r.operator == "In"]
        if not fields:
            return None
        names |= frozenset.intersection(*(frozenset(r.values) for r in fields))
    return frozenset(names)


_RESOURCE_ORDER = {"cpu": 0, "memory": 1, "ephemeral-storage": 2}


def _shortage(node: NodeInfo, wanted: list[tuple[str, int]]) -> Refusal:
    short = [
        (resource, amount) for resource, amount in wanted if amount > node.free.get(resource, 0)
    ]
    reasons = [f"Insufficient {resource}" for resource, _ in short]
    if node.free_pods <= 0:
        reasons.insert(0, TOO_MANY_PODS)
    allocatable = node.manifest.allocatable
    hopeless = any(amount > allocatable.get(resource, 0) for resource, amount in short)
    return Refusal(tuple(reasons), unresolvable=hopeless)


def _node_unschedulable(pod: Pod) -> Filter | None:
    if any(tolerates(toleration, _UNSCHEDULABLE_TAINT) for toleration in pod.spec.tolerations):
        return None
    return lambda node: UNSCHEDULABLE if node.manifest.spec.unschedulable else None


def _taint_toleration(pod: Pod) -> Filter:
    tolerations = pod.spec.tolerations

    def check(node: NodeInfo) -> Refusal | None:
        taints = node.manifest.spec.taints
        return TAINTED if untolerated(taints, tolerations, DO_NOT_SCHEDULE) else None

    return check


def _node_affinity(pod: Pod) -> Filter | None:
    selector = pod.spec.node_selector.items()
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    if not selector and required is None:
        return None

    def check(node: NodeInfo) -> Refusal | None:
        labels = node.manifest.metadata.labels
        if selector <= labels.items() and (
            required is None or matches_node_selector(required, node.manifest)
        ):
            return None
        return NO_AFFINITY

    return check


def _node_ports(pod: Pod) -> Filter | None:
    wanted = pod.host_ports
    if not wanted:
        return None

    def check(node: NodeInfo) -> Refusal | None:
        used = [port for other in node.pods.values() for port in other.pod.host_ports]
        return NO_PORTS if any(_clash(a, b) for a in wanted for b in used) else None

    return check


def _clash(a: ContainerPort, b: ContainerPort) -> bool:
    if (a.protocol, a.host_port) != (b.protocol, b.host_port):
        return False
    anywhere = ("", "0.0.0.0")  # noqa: S104 - what pods may write
    return a.host_ip == b.host_ip or a.host_ip in anywhere or b.host_ip in anywhere
