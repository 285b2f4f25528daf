"""Reads kube-scheduler's message about a pod without a node, and finds out who rejected what."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cli.gateway.finding import Object

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
    """A reason, how many nodes it concerns, and who gave it."""

    nodes: int
    reason: str
    plugin: str

    def __str__(self) -> str:
        by = f"Moorage {self.plugin}" if self.plugin else "kube-scheduler"
        return f"{self.nodes} {self.reason} ({by})"

    @property
    def step(self) -> str:
        """What would have to change; "" if that is not known."""
        if self.plugin:
            return (
                f"what {self.plugin} asks for has to change; `moorage explain --node` has one node"
            )
        for pattern, step in STEPS:
            if found := re.search(pattern, self.reason):
                return step.format(*found.groups())
        return ""


@dataclass(frozen=True, slots=True)
class Rejections:
    """How many nodes there are, and why none was taken; the most frequent reason first."""

    nodes: int
    parts: Sequence[Rejection]


def rejections(message: str, attempts: Sequence[Object]) -> Rejections:
    """Return what *message* says, each reason with the plugin of Moorage's that gave it, if any."""
    found = AVAILABLE.match(message)
    if not found:
        return Rejections(0, ())
    plugins = dict(_reasons(next((a for a in attempts if a.get("filter")), {})))
    text = found[2].partition(". ")[0].rstrip(".")
    parts = []
    for part in re.split(r", (?=\d+ )", text):
        nodes, _, reason = part.partition(" ")
        if nodes.isdecimal():
            parts.append(Rejection(int(nodes), reason, plugins.get(reason, "")))
    return Rejections(int(found[1]), sorted(parts, key=lambda part: -part.nodes))


def _reasons(attempt: Object) -> Iterator[tuple[str, str]]:
    for plugin in (attempt.get("filter") or {}).get("plugins") or ():
        for each in plugin.get("reasons") or ():
            yield each["reason"], plugin["plugin"]
