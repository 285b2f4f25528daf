"""Reads kube-scheduler's message about a pod without a node, and finds out who rejected what."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cli.shared.gateway.finding import Object

AVAILABLE = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)

STEPS = (
    (r"Insufficient (\S+)", "free {0} on a node, add a node, or lower the pod's requests of {0}"),
    (r"Too many pods", "remove pods from a node, or add a node"),
    (r"untolerated taint", "tolerate the taint in the pod, or remove it from a node"),
    (r"node affinity/selector", "change the pod's nodeSelector or affinity, or a node's labels"),
    (r"unschedulable", "uncordon a node"),
    (
        r"topology spread",
        "relax the pod's topologySpreadConstraints, or add nodes in other domains",
    ),
    (r"anti-affinity|pod affinity", "change the affinity rules, or move the pods that they match"),
    (r"free ports", "change the pod's hostPort, or free the port on a node"),
    (r"[Vv]olume", "see the pod's PersistentVolumeClaims"),
)
"""What helps against reasons of kube-scheduler's own plugins."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A reason, how many nodes it concerns, and who gave it.

    Attributes:
        nodes: How many nodes.
        reason: What it says.
        plugin: The plugin of Moorage that gave it, "" for kube-scheduler's own.
        preemptible: Whether that plugin says that evicting pods may help.
    """

    nodes: int
    reason: str
    plugin: str
    preemptible: bool = False

    def __str__(self) -> str:
        return f"{self.nodes} {self.reason} ({self.by})"

    @property
    def by(self) -> str:
        """Who gave it."""
        return f"Moorage {self.plugin}" if self.plugin else "kube-scheduler"

    @property
    def step(self) -> str:
        """What would have to change; "" if that is not known."""
        if self.plugin:
            evicting = ", or pods have to go" if self.preemptible else ""
            return (
                f"what {self.plugin} asks for has to change{evicting}; "
                "`moorage explain --node` has one node"
            )
        for pattern, step in STEPS:
            if found := re.search(pattern, self.reason):
                return step.format(*found.groups())
        return ""


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
        return [part.reason for part in self.parts if not part.plugin]


def rejections(message: str, attempts: Sequence[Object]) -> Rejections:
    """Return what *message* says, each reason with the plugin of Moorage's that gave it, if any."""
    found = AVAILABLE.match(message)
    if not found:
        return Rejections()
    ours = dict(_reasons(next((a for a in attempts if a.get("filter")), {})))
    text, _, rest = found[2].partition(". ")
    parts = []
    for part in re.split(r", (?=\d+ )", text.rstrip(".")):
        nodes, _, reason = part.partition(" ")
        if nodes.isdecimal():
            plugin, preemptible = ours.get(reason, ("", False))
            parts.append(Rejection(int(nodes), reason, plugin, preemptible))
    parts.sort(key=lambda part: -part.nodes)
    preemption = rest.removeprefix("preemption: ").rstrip(". ") if "preemption" in rest else ""
    return Rejections(int(found[1]), parts, preemption)


def _reasons(attempt: Object) -> Iterator[tuple[str, tuple[str, bool]]]:
    for plugin in (attempt.get("filter") or {}).get("plugins") or ():
        for each in plugin.get("reasons") or ():
            yield each["reason"], (plugin["plugin"], not each.get("unresolvable"))
