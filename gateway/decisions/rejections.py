"""Finds out who rejected the nodes of a pod: kube-scheduler, or which plugin; and what would help.

kube-scheduler's message joins the reasons of all. Those that Moorage gave are known from the
attempt; the rest are kube-scheduler's own.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.cycle.decision import UNKNOWN_NODE
from gateway.decisions.known import Object

KUBE_SCHEDULER = "kube-scheduler"

Steps = Sequence[tuple[str, str]]
"""Patterns, each with what helps."""

AVAILABLE = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)

AFFINITY = r"node affinity/selector|\[NodeAffinity\]"

NO_NODE_LEFT = "node(s) didn't match Pod's node affinity/selector or that of its volumes"
"""A reason that kube-scheduler up to 1.30 does not give."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

STEPS = (
    (r"Insufficient (\S+)", "free {0} on a node, add a node, or lower the pod's requests of {0}"),
    (r"Too many pods", "remove pods from a node, or add a node"),
    (r"untolerated taint", "tolerate the taint in the pod, or remove it from a node"),
    (AFFINITY, "change the pod's nodeSelector or affinity, or a node's labels"),
    (r"unschedulable", "uncordon a node"),
    (
        r"topology spread",
        "relax the pod's topologySpreadConstraints, or add nodes in other domains",
    ),
    (r"anti-affinity|pod affinity", "change the affinity rules, or move the pods that they match"),
    (r"free ports", "change the pod's hostPort, or free the port on a node"),
    (
        r'persistentvolumeclaim "(\S+)" not found',
        "create PersistentVolumeClaim {0}, or name another one in the pod's volumes",
    ),
    (
        r"unbound immediate PersistentVolumeClaims",
        "kubectl describe the pod's PersistentVolumeClaims: a StorageClass or a volume is missing",
    ),
    (r"[Vv]olume", "kubectl describe the pod's PersistentVolumeClaims"),
    (r"(?i)resource ?claim", "kubectl describe the pod's ResourceClaims"),
)
"""What helps against reasons of kube-scheduler's own plugins."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A reason, how many nodes it concerns, and who gave it.

    Attributes:
        nodes: How many nodes.
        reason: What it says.
        by: Who gave it: a plugin of Moorage, the gateway, or kube-scheduler; "" if not known.
        step: What would have to change; "" if that is not known.
        preemptible: Whether Moorage's plugin says that evicting pods may help.
    """

    nodes: int
    reason: str
    by: str
    step: str = ""
    preemptible: bool = False

    def __str__(self) -> str:
        return f"{self.nodes} {self.reason}{f' ({self.by})' if self.by else ''}"


@dataclass(frozen=True, slots=True)
class Rejections:
    """How many nodes there are, and why none was taken; the most frequent reason first.

    Attributes:
        nodes: How many nodes there are.
        parts: The reasons.
        preemption: What came of looking for pods to evict; "" if nobody looked.
    """

    nodes: int = 0
    parts: Sequence[Rejection] = ()
    preemption: str = ""

    @property
    def in_tree(self) -> Sequence[str]:
        """The reasons of kube-scheduler's own plugins."""
        return [part.reason for part in self.parts if part.by == KUBE_SCHEDULER]


NO_REJECTIONS = Rejections()


def rejections(scheduled: Object, filtered: Object, *, asked: bool) -> Rejections:
    """Return what kube-scheduler's message says, each reason with who gave it.

    The message joins reasons with commas, which they may have as well, and adds up equal ones. So
    the reasons that Moorage is known to have given are taken out first.

    Args:
        scheduled: The pod's condition PodScheduled.
        filtered: The newest attempt with verdicts; empty if there is none.
        asked: Whether the gateway was asked.
    """
    if scheduled.get("reason") != "Unschedulable":
        return Rejections()
    found = AVAILABLE.match(str(scheduled.get("message", "")))
    if not found:
        return Rejections()
    nodes, text, parts = int(found[1]), found[2], list[Rejection]()
    if text.startswith("preemption: "):  # kube-scheduler up to 1.30: PreFilter left no node
        text = f"{nodes} {NO_NODE_LEFT}. {text}"
    ours = _ours(filtered)
    may_be_in_tree = nodes > (filtered.get("filter") or {}).get("nodes", 0)
    for reason in sorted(ours, key=len, reverse=True):
        form = rf"(?:^|(?<=, ))(\d+) {re.escape(reason)}(?=, [\d\0]|\.$|\. |$)"
        if hit := re.search(form, text):
            text = f"{text[: hit.start()]}\0{text[hit.end() :]}"
            parts += _shared(int(hit[1]), ours[reason], in_tree=may_be_in_tree)
    text, _, rest = text.partition(". ")
    by = KUBE_SCHEDULER if asked else ""
    for part in re.split(r", (?=[\d\0])", text.rstrip(".")):
        count, _, reason = part.partition(" ")
        if count.isdecimal():
            parts.append(_in_tree(int(count), reason, by))
    parts.sort(key=lambda part: -part.nodes)
    preemption = rest.partition("preemption: ")[2].rstrip(". ")
    return Rejections(nodes, parts, preemption)


def _ours(attempt: Object) -> Mapping[str, list[Rejection]]:
    """Return what Moorage rejected in an attempt, by reason."""
    found: defaultdict[str, list[Rejection]] = defaultdict(list)
    filtered = attempt.get("filter") or {}
    for plugin in filtered.get("plugins") or ():
        for each in plugin.get("reasons") or ():
            name, preemptible = plugin["plugin"], not each.get("unresolvable")
            step = (
                f"change the pod or a node to what {name} asks for"
                f"{', or remove pods' if preemptible else ''}; per node: `moorage explain --node`"
            )
            found[each["reason"]].append(
                Rejection(each["nodes"], each["reason"], f"Moorage {name}", step, preemptible)
            )
    if unknown := filtered.get("unknownNodes"):
        step = "see /readyz of the gateway, which has not seen these nodes yet"
        found[UNKNOWN_NODE].append(Rejection(unknown, UNKNOWN_NODE, "Moorage's gateway", step))
    return found


def _shared(nodes: int, ours: Sequence[Rejection], *, in_tree: bool) -> Iterator[Rejection]:
    """Yield who gave a reason that *nodes* have: Moorage, and kube-scheduler if that may be."""
    for number, each in enumerate(ours, start=1):
        is_last = number == len(ours) and not in_tree
        count = nodes if is_last else min(each.nodes, nodes)
        nodes -= count
        if count:
            yield Rejection(count, each.reason, each.by, each.step, each.preemptible)
    if nodes:
        yield _in_tree(nodes, ours[0].reason, KUBE_SCHEDULER)


def _in_tree(nodes: int, reason: str, by: str) -> Rejection:
    return Rejection(nodes, reason, by, "".join(first_step(STEPS, reason)))


def selector_step(pod: Object, part: Rejection) -> str:
    """Return what helps a pod whose nodeSelector, or the node that it names, no node has."""
    spec, affinity = pod["spec"], (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    if not re.search(AFFINITY, part.reason):
        return ""
    terms = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
    fields = [field for term in terms for field in term.get("matchFields") or ()]
    if names := ", ".join(name for field in fields for name in field.get("values") or ()):
        return f"the pod's affinity names node {names}: create it, or change the affinity"
    labels = ",".join(f"{key}={value}" for key, value in (spec.get("nodeSelector") or {}).items())
    return f"label a node with {labels}, or change the pod's nodeSelector" if labels else ""


def first_step(steps: Steps, text: str) -> list[str]:
    """Return the step of the first pattern that a text has."""
    hits = ((re.search(pattern, text), step) for pattern, step in steps)
    return next(([step.format(*hit.groups())] for hit, step in hits if hit), [])
