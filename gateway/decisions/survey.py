"""Looks at the nodes for a pod: which it may use at all, and what each of those lacks.

kube-scheduler's message adds reasons up over all nodes, so it does not say which of them concern
the node that a pod is pinned to. The gateway looks at each node by itself, for what in-tree filters
ask most: selectors, cordons, taints, room. What else there is, such as volumes, it does not see.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from gateway.cluster.state import ClusterState
from moorage.models import NodeManifest, Pod, Taint
from moorage.rules.nodes import matches_node_selector
from moorage.rules.taints import DO_NOT_SCHEDULE, tolerates, untolerated
from moorage.units.quantity import format_quantity

AT_ONCE = 50
"""Nodes after which cycles get their turn."""

MOST_SURVEYS = 200
"""Surveys that are kept while the cluster stays as it is."""

HOSTNAME = "kubernetes.io/hostname"

CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

BY_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""Resources that nodes do not offer: kube-scheduler allocates the devices itself."""


class Obstacle(NamedTuple):
    """What keeps a pod off a node that it may use.

    Attributes:
        kind: Of a resource the node may offer nothing, too little even when empty, or too little
            now; or it has no room for another pod, has a taint, or is cordoned.
        what: The resource or the taint.
    """

    kind: Literal["none", "small", "short", "pods", "tainted", "cordoned"]
    what: str = ""

    @property
    def reason(self) -> str:
        """What kube-scheduler calls it."""
        match self.kind:
            case "pods":
                return "Too many pods"
            case "tainted":
                return f"node(s) had untolerated taint {self.what}"
            case "cordoned":
                return "node(s) were unschedulable"
        return f"Insufficient {self.what}"


class Survey(msgspec.Struct, kw_only=True):
    """What the nodes lack for a pod.

    Attributes:
        nodes: How many nodes there are.
        usable: Those that the pod's selector and affinity allow.
        by_obstacles: The same by what keeps the pod off them; () has those that seem to suit it.
        requests: What the pod requests.
        largest: The most that a usable node has of each of these.
        names: The nodes that the pod's affinity names.
        lost: Those of them that do not exist.
        host: The host name that the pod's nodeSelector wants; "" for none.
        labels: The other labels that it wants.
    """

    nodes: int
    usable: list[str] = []
    by_obstacles: dict[tuple[Obstacle, ...], list[str]] = {}
    requests: Mapping[str, int]
    largest: dict[str, int] = {}
    names: list[str] = []
    lost: list[str] = []
    host: str = ""
    labels: dict[str, str] = {}

    def has(self, resource: str) -> bool:
        """Whether a usable node is large enough for what the pod requests."""
        return self.largest.get(resource, 0) >= self.requests.get(resource, 0)

    def amount(self, resource: str, *, largest: bool = False) -> str:
        """Return what the pod requests of a resource, or the *largest* node has."""
        amounts = self.largest if largest else self.requests
        return format_quantity(resource, amounts.get(resource, 0))


class Surveyor:
    """Makes surveys; equal pods have one until the cluster changes."""

    def __init__(self, state: ClusterState) -> None:
        """Look at the nodes of *state*."""
        self._state = state
        self._used: dict[str, tuple[int, Mapping[str, int]]] = {}
        self._kept: dict[bytes, Survey] = {}
        self._generation = 0

    async def survey(self, pod: Pod) -> Survey:
        """Return what the nodes lack for a pod; those that come or go meanwhile may be missing."""
        generation = self._state.generation
        if self._generation != generation or len(self._kept) >= MOST_SURVEYS:
            self._kept.clear()
        self._generation = generation
        affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
        of_pod = (pod.spec.node_selector, affinity, pod.spec.tolerations, pod.requests)
        key = msgspec.json.encode(of_pod)
        if (kept := self._kept.get(key)) is not None:
            return kept
        entries = self._state.rows.entries
        labels = dict(pod.spec.node_selector)
        found = Survey(
            nodes=len(entries),
            usable=[],
            by_obstacles={},
            requests=pod.requests,
            largest={},
            names=(names := list(_names(pod))),
            lost=[name for name in names if name not in entries],
            host=labels.pop(HOSTNAME, ""),
            labels=labels,
        )
        for count, name in enumerate(list(entries), start=1):
            if (entry := entries.get(name)) is not None and may_use(pod, entry.manifest):
                found.usable.append(name)
                obstacles = tuple(self._obstacles(pod, entry.manifest))
                found.by_obstacles.setdefault(obstacles, []).append(name)
                for resource in pod.requests:
                    there = entry.manifest.allocatable.get(resource, 0)
                    found.largest[resource] = max(found.largest.get(resource, 0), there)
            if count % AT_ONCE == 0:
                await asyncio.sleep(0)
        for gone in self._used.keys() - entries.keys():
            del self._used[gone]
        if self._state.generation == generation:
            self._kept[key] = found
        return found

    def lacks(self, pod: Pod, name: str) -> list[str]:
        """Return why kube-scheduler's own filters reject a node, as far as they are looked at."""
        if (entry := self._state.rows.entries.get(name)) is None:
            return []
        if not may_use(pod, entry.manifest):
            return [_mismatch(pod, entry.manifest)]
        return [each.reason for each in self._obstacles(pod, entry.manifest)]

    def node_of(self, given: str) -> str:
        """Return the node that people mean, by its name or host name; "" if there is none."""
        entries = self._state.rows.entries
        if given in entries:
            return given
        hosts, shorts = [], []
        for name, entry in entries.items():
            hosts += [name] if entry.manifest.metadata.labels.get(HOSTNAME) == given else []
            shorts += [name] if name.partition(".")[0] == given else []
        for found in (hosts, shorts):
            if len(found) == 1:
                return found[0]
        return ""

    def _obstacles(self, pod: Pod, node: NodeManifest) -> Iterator[Obstacle]:
        tolerations, taints = pod.spec.tolerations, node.spec.taints
        if node.spec.unschedulable:
            taints = tuple(each for each in taints if each.key != CORDONED.key)
            if not any(tolerates(each, CORDONED) for each in tolerations):
                yield Obstacle("cordoned")
        if (taint := untolerated(taints, tolerations, DO_NOT_SCHEDULE)) is not None:
            value = f"={taint.value}" if taint.value else ""
            yield Obstacle("tainted", f"{taint.key}{value}:{taint.effect}")
        used, there = self._requested(node.name), node.allocatable
        if used.get("pods", 0) >= there.get("pods", 0):
            yield Obstacle("pods")
        for resource, amount in pod.requests.items():
            has = there.get(resource, 0)
            if amount <= 0 or resource.startswith(BY_DEVICE_CLASS):
                continue
            if amount > has:
                yield Obstacle("small" if has else "none", resource)
            elif amount > has - used.get(resource, 0):
                yield Obstacle("short", resource)

    def _requested(self, node: str) -> Mapping[str, int]:
        """Return what the pods on a node request, and under "pods" how many they are."""
        changed = int(self._state.rows.touched[self._state.rows.of[node]])
        kept = self._used.get(node)
        if kept is None or kept[0] != changed:
            kept = self._used[node] = changed, self._state.requested(node)
        return kept[1]


def may_use(pod: Pod, node: NodeManifest) -> bool:
    """Whether the pod's nodeSelector and required affinity allow a node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if not affinity or affinity.required is None:
        return True
    try:
        return matches_node_selector(affinity.required, node)
    except ValueError:  # an operator that does not exist
        return False


def _names(pod: Pod) -> Iterator[str]:
    """Yield the nodes that the pod's required affinity names."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    for term in affinity.required.node_selector_terms if affinity and affinity.required else ():
        for field in term.match_fields:
            yield from field.values if field.operator == "In" else ()


def _mismatch(pod: Pod, node: NodeManifest) -> str:
    labels: Sequence[str] = [
        f"{key}={value}"
        for key, value in pod.spec.node_selector.items()
        if node.metadata.labels.get(key) != value
    ]
    wanted = f"nodeSelector wants {', '.join(labels)}" if labels else "affinity does not allow it"
    return f"the pod's {wanted}"
