"""What differs between autoscalers.

How does a placeholder keep off nodes that exist? What would a new node be like?
Karpenter refuses node affinity by host name and by any label of its own. So nodes that exist get a
label of Moorage, which new ones do not have. Cluster Autoscaler makes the node of its simulation
from a real one, with all labels but the host name. So there the host names of nodes that exist are
listed.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from cli.capacity.placeholder import Manifest
from gateway.decisions.advice import HOSTNAME
from gateway.inspector.nodes import is_ready
from moorage.models import NodeManifest, Pod
from moorage.rules.nodes import allows_node
from moorage.rules.taints import DO_NOT_SCHEDULE, untolerated

EXISTING: Final = "moorage.io/existing"
"""The label of nodes that existed when a node was asked for."""

NODE_POOL, INITIALIZED = "karpenter.sh/nodepool", "karpenter.sh/initialized"

WELL_KNOWN: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "karpenter.sh/capacity-type",
)
"""Labels that a node of Karpenter gets although its NodePool does not name them."""

MOST_HOSTS: Final = 1000
"""Nodes that a placeholder for Cluster Autoscaler can name: a pod has at most about 1 MB."""

MOST_TEMPLATES: Final = 16
"""Kinds of new nodes that are looked at for a pod."""

BRIEF_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
"""Taints that only a node has which is not ready yet, or is about to go."""


@dataclass(frozen=True, slots=True)
class Template:
    """A node that an autoscaler would make; `origin` says of what, for people."""

    node: NodeManifest
    origin: str


class Autoscaler(ABC):
    """An autoscaler, as one asks it for a node.

    Attributes:
        name: As options and labels have it.
        title: For people.
        keep: The annotation by which it does not take a node away.
        marks_nodes: Whether nodes that exist get the label `EXISTING`.
        brings: The reason of the Event by which it says that it brings a node for a pod.
    """

    name: str
    title: str
    keep: tuple[str, str]
    marks_nodes: bool
    brings: str

    @abstractmethod
    def templates(self, pools: Sequence[Manifest], nodes: Sequence[NodeManifest]) -> list[Template]:
        """Return the nodes that it could make."""

    @abstractmethod
    def other_than(self, nodes: Sequence[NodeManifest]) -> Manifest | None:
        """Return what only a node other than *nodes* has; None if that cannot be reported."""

    @abstractmethod
    def is_coming(self, node: NodeManifest) -> bool:
        """Whether a node has been made, and is not ready yet for the first time."""


class Karpenter(Autoscaler):
    """Karpenter, from 1.0 on."""

    name = "karpenter"
    title = "Karpenter"
    keep = ("karpenter.sh/do-not-disrupt", "true")
    marks_nodes = True
    brings = "Nominated"

    def templates(self, pools: Sequence[Manifest], nodes: Sequence[NodeManifest]) -> list[Template]:
        """Return for each NodePool nodes with labels, annotations and taints as its nodes get."""
        found: list[Template] = []
        for pool in pools:
            found += itertools.islice(_of_pool(pool, nodes), MOST_TEMPLATES)
        return found

    def other_than(self, nodes: Sequence[NodeManifest]) -> Manifest | None:
        """Return that it lacks the label; all *nodes* have it."""
        return {"key": EXISTING, "operator": "DoesNotExist"}

    def is_coming(self, node: NodeManifest) -> bool:
        """Whether Karpenter has yet to see it initialized."""
        labels = node.metadata.labels
        return NODE_POOL in labels and labels.get(INITIALIZED) != "true"


class ClusterAutoscaler(Autoscaler):
    """Cluster Autoscaler, by its documentation and source."""

    name = "cluster-autoscaler"
    title = "Cluster Autoscaler"
    keep = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true")
    marks_nodes = False
    brings = "TriggeredScaleUp"

    def templates(self, pools: Sequence[Manifest], nodes: Sequence[NodeManifest]) -> list[Template]:
        """Return a new node for each kind of node that exists."""
        found: dict[object, Template] = {}
        for node in nodes:
            template = _like(node, f"new-node-{len(found)}")
            labels = {**template.metadata.labels, HOSTNAME: ""}
            kind = (
                tuple(sorted(labels.items())),
                template.spec.taints,
                tuple(sorted(node.allocatable.items())),
            )
            if len(found) < MOST_TEMPLATES:
                found.setdefault(kind, Template(template, f"a node like {node.name}"))
        return list(found.values())

    def other_than(self, nodes: Sequence[NodeManifest]) -> Manifest | None:
        """Return that it has another host name."""
        if len(nodes) > MOST_HOSTS:
            return None
        hosts = sorted({each.metadata.labels.get(HOSTNAME, each.name) for each in nodes})
        return {"key": HOSTNAME, "operator": "NotIn", "values": hosts}

    def is_coming(self, node: NodeManifest) -> bool:
        """Whether it is not ready; which nodes ever were is not to be seen."""
        return not is_ready(node)


AUTOSCALERS: Final[Mapping[str, Autoscaler]] = {
    each.name: each for each in (Karpenter(), ClusterAutoscaler())
}


def suiting(pod: Pod, templates: Sequence[Template]) -> list[Template]:
    """Return those templates that suit a pod by kube-scheduler's rules that concern one node.

    What a template leaves open, such as the zone, is what the pod wants.
    """
    wanted = dict(_wanted(pod))
    found = []
    for each in templates:
        metadata = each.node.metadata
        labels = {**wanted, **metadata.labels} if NODE_POOL in metadata.labels else metadata.labels
        node = replace(each.node, metadata=replace(metadata, labels=labels))
        if _fits(pod, node):
            found.append(Template(node, each.origin))
    return found


def _wanted(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield values of labels that a pod asks for, of those that Karpenter may choose freely."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    for each in terms[0].match_expressions if terms else ():
        if each.operator == "In" and each.values and _is_free(each.key):
            yield each.key, each.values[0]
    for key, value in pod.spec.node_selector.items():
        if _is_free(key):
            yield key, value


def _is_free(key: str) -> bool:
    return key in WELL_KNOWN or key.partition("/")[0].startswith("karpenter.k8s.")


def _fits(pod: Pod, node: NodeManifest) -> bool:
    """Whether an empty node suits a pod, by kube-scheduler's rules that concern one node."""
    if not allows_node(pod, node):
        return False
    if untolerated(node.spec.taints, pod.spec.tolerations, DO_NOT_SCHEDULE) is not None:
        return False
    has = node.allocatable
    return all(amount <= has.get(name, 0) for name, amount in pod.requests.items() if amount > 0)


def narrowed(passing: Sequence[Template], judged: Sequence[Template]) -> Iterator[Manifest]:
    """Yield what a new node has to have so that it is one of those that pass.

    Karpenter chooses among the values that a NodePool allows, and knows no rule.
    """
    keys = {key for each in judged for key in each.node.metadata.labels} - {HOSTNAME, NODE_POOL}
    for key in sorted(keys):
        good, all_values = (
            {each.node.metadata.labels.get(key) for each in group} for group in (passing, judged)
        )
        if good < all_values and None not in good:
            yield {"key": key, "operator": "In", "values": sorted(filter(None, good))}


def _of_pool(pool: Manifest, nodes: Sequence[NodeManifest]) -> Iterator[Template]:
    """Yield what a NodePool could make: a node for each value that its requirements leave open."""
    name, spec = pool["metadata"]["name"], _object(pool.get("spec"))
    template = _object(spec.get("template"))
    wanted = _object(template.get("spec"))
    own = [each for each in nodes if each.metadata.labels.get(NODE_POOL) == name]
    like = max(own or nodes, key=lambda each: sorted(each.allocatable.items()), default=None)
    metadata = _object(template.get("metadata"))
    labels = {NODE_POOL: name, **_object(metadata.get("labels"))}
    choices = [
        [(each["key"], value) for value in each["values"]]
        for each in wanted.get("requirements") or ()
        if each.get("operator") == "In" and each.get("values") and each.get("key") != HOSTNAME
    ]
    taints = [
        {"key": each.get("key"), "value": each.get("value") or "", "effect": each.get("effect")}
        for each in wanted.get("taints") or ()
    ]
    for number, chosen in enumerate(itertools.product(*choices)):
        made = _node(f"{name}-new-{number}", {**labels, **dict(chosen)}, taints, like)
        notes = _object(metadata.get("annotations"))
        made = replace(made, metadata=replace(made.metadata, annotations=notes))
        yield Template(made, f"a node of NodePool {name}")


def claimed_node(claim: Manifest, *, meant: bool = False) -> NodeManifest:
    """Return the node that a NodeClaim of Karpenter becomes, as far as it says.

    Its amounts are those that it was made for if it says no others, or if *meant*.
    """
    spec, status = _object(claim.get("spec")), _object(claim.get("status"))
    labels = dict(_object(claim["metadata"].get("labels")))
    for each in spec.get("requirements") or ():
        if each.get("operator") == "In" and len(each.get("values") or ()) == 1:
            labels[each["key"]] = each["values"][0]
    requested = _object(_object(spec.get("resources")).get("requests"))
    node = _node(claim["metadata"]["name"], labels, (), None)
    amounts = (not meant and _object(status.get("allocatable"))) or requested
    return replace(node, status=replace(node.status, allocatable=amounts))


def _node(
    name: str, labels: Mapping[str, str], taints: Sequence[Manifest], like: NodeManifest | None
) -> NodeManifest:
    allocatable = like.status.allocatable if like is not None else {}
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": name, "labels": {**labels, HOSTNAME: name}},
            "spec": {"taints": taints},
            "status": {
                "allocatable": dict(allocatable),
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        NodeManifest,
    )


def _like(node: NodeManifest, name: str) -> NodeManifest:
    """Return a new node like one that exists, without what is its own."""
    hosts = {node.name, node.metadata.labels.get(HOSTNAME)}
    labels = {
        key: value
        for key, value in node.metadata.labels.items()
        if value not in hosts and key != EXISTING
    }
    taints = [each for each in node.spec.taints if not each.key.startswith(BRIEF_TAINTS)]
    made = _node(name, labels, (), node)
    return replace(made, spec=replace(made.spec, taints=tuple(taints)))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
