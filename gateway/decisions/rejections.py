"""Finds out who rejected the nodes of a pod: kube-scheduler, or which plugin.

kube-scheduler's message joins the reasons of all. Those that Moorage gave are known from the
attempt; the rest are kube-scheduler's own.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gateway.cycle.decision import UNKNOWN_NODE, Decision
from gateway.decisions.advice import GATEWAY, KUBE_SCHEDULER, OURS
from gateway.decisions.evidence import Object
from gateway.decisions.explanation import RejectedNodes

AVAILABLE = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)

NO_NODE_LEFT = "node(s) didn't match Pod's node affinity/selector or that of its volumes"
"""A reason that kube-scheduler up to 1.30 does not give."""

NO_VICTIM = "expected at least one victim pod"
"""What kube-scheduler says if it takes pods away and finds that nothing is gained by it."""

NONE_EVICTED = "kube-scheduler evicts no pod, since its own filters have nothing against the nodes"

REMOVING = "removing pods may help, but kube-scheduler evicts none for it"


class Rejections(NamedTuple):
    """How many nodes there are, and why none was taken; the most frequent reason first.

    `preemption` is what came of looking for pods to evict; "" if nobody looked.
    """

    nodes: int = 0
    parts: Sequence[RejectedNodes] = ()
    preemption: str = ""

    @property
    def in_tree(self) -> Sequence[str]:
        """The reasons of kube-scheduler's own plugins."""
        return [part.reason for part in self.parts if part.by == KUBE_SCHEDULER]


def rejections(scheduled: Object, filtered: Decision | None, *, asked: bool) -> Rejections:
    """Return what kube-scheduler's message says, each reason with who gave it.

    The message joins reasons with commas, which they may have as well, and adds up equal ones. So
    the reasons that Moorage is known to have given are taken out first.

    Args:
        scheduled: The pod's condition PodScheduled.
        filtered: The newest attempt with verdicts; None if there is none.
        asked: Whether the gateway was asked.
    """
    if scheduled.get("reason") != "Unschedulable":
        return Rejections()
    found = AVAILABLE.match(str(scheduled.get("message", "")))
    if not found:
        return Rejections()
    nodes, text, parts = int(found[1]), found[2], list[RejectedNodes]()
    if text.startswith("preemption: "):  # kube-scheduler up to 1.30: PreFilter left no node
        text = f"{nodes} {NO_NODE_LEFT}. {text}"
    ours = _ours(filtered)
    offered = filtered.filter.nodes if filtered is not None and filtered.filter is not None else 0
    may_be_in_tree = nodes > offered
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
            parts.append(RejectedNodes(nodes=int(count), reason=reason, by=by))
    parts.sort(key=lambda part: -part.nodes)
    preemption = rest.partition("preemption: ")[2].rstrip(". ")
    if NO_VICTIM in preemption:
        preemption = NONE_EVICTED
        parts = [replace(each, evicting=REMOVING if each.evicting else "") for each in parts]
    return Rejections(nodes, parts, preemption)


def _ours(attempt: Decision | None) -> Mapping[str, list[RejectedNodes]]:
    """Return what Moorage rejected in an attempt, by reason."""
    found: defaultdict[str, list[RejectedNodes]] = defaultdict(list)
    if attempt is None or attempt.filter is None:
        return found
    waits = attempt.group is not None and attempt.group.waits
    for plugin in attempt.filter.plugins:
        for each in plugin.reasons:
            name, may_evict = plugin.plugin, not (each.unresolvable or waits)
            found[each.reason].append(
                RejectedNodes(
                    nodes=each.nodes,
                    reason=each.reason,
                    by=f"{OURS}{name}",
                    evicting="evicting pods may help" if may_evict else "",
                )
            )
    if unknown := attempt.filter.unknown_nodes:
        unseen = RejectedNodes(nodes=unknown, reason=UNKNOWN_NODE, by=GATEWAY)
        found[UNKNOWN_NODE].append(unseen)
    return found


def _shared(nodes: int, ours: Sequence[RejectedNodes], *, in_tree: bool) -> Iterator[RejectedNodes]:
    """Yield who gave a reason that *nodes* have: Moorage, and kube-scheduler if that may be."""
    for number, each in enumerate(ours, start=1):
        is_last = number == len(ours) and not in_tree
        count = nodes if is_last else min(each.nodes, nodes)
        nodes -= count
        if count:
            yield replace(each, nodes=count)
    if nodes:
        yield RejectedNodes(nodes=nodes, reason=ours[0].reason, by=KUBE_SCHEDULER)
