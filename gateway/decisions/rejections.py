"""Finds out who rejected the nodes of a pod, or one of them, and what helps whatever the nodes are.

kube-scheduler's message joins the reasons of all. Those that Moorage gave are known from the
attempt; the rest are kube-scheduler's own.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gateway.cycle.decision import UNKNOWN_NODE, Decision
from gateway.decisions.explanation import Object, PodEvidence, RejectedNodes
from gateway.decisions.nodes import NodeView
from gateway.decisions.sentences import is_tie

KUBE_SCHEDULER, GATEWAY, OURS = "kube-scheduler", "Moorage's gateway", "Moorage "
"""Who rejects nodes; the last stands before the names of plugins."""

Steps = Sequence[tuple[str, str]]
"""Patterns, each with what helps."""

ANY_NODE = "a node"

STEPS = (
    (r"Insufficient (\S+)", "free {0} on a node, add a node, or lower the pod's requests of {0}"),
    (r"Too many pods", "remove pods from a node, or add a node"),
    (r"untolerated taint", "tolerate the taint in the pod, or remove it from a node"),
    (
        r"node affinity|NodeAffinity",
        "change the pod's nodeSelector or affinity, or a node's labels",
    ),
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
"""What helps against reasons of kube-scheduler's own plugins, whatever the nodes are."""

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
    found = AVAILABLE.match(str(scheduled.get("message") or ""))
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
                    cured_by=each.cured_by,
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


# ---- what helps


def first_step(steps: Steps, text: str) -> list[str]:
    """Return the step of the first pattern that a text has."""
    hits = ((re.search(pattern, text), step) for pattern, step in steps)
    return next(([step.format(*hit.groups())] for hit, step in hits if hit), [])


def general_step(rejected: RejectedNodes, where: str = ANY_NODE) -> str:
    """Return what helps against a reason, there or on any node; "" if that is not known."""
    if rejected.by == GATEWAY:
        return "see /readyz of the gateway, which has not seen these nodes yet"
    if not rejected.by.startswith(OURS):
        return "".join(first_step(STEPS, rejected.reason))
    remove = ", or remove pods" if rejected.evicting else ""
    target = f"the pod or {where}" if where.startswith(ANY_NODE) else f"the pod, or {where},"
    ask = f"change {target} to what {rejected.by.removeprefix(OURS)} asks for{remove}"
    return f"{ask}; per node: `moorage explain --node`"


# ---- one node


def about(place: str, node: str) -> str:
    """Return whether the pod, which is on *place*, is on a node."""
    if place == node:
        return f"is on {node}"
    return f"is not on {node} but on {place}" if place else f"is not on {node}"


def on_node(known: PodEvidence, found: Rejections, place: str) -> str:
    """Return why the pod is on one node, or why not."""
    node = known.node
    view = next((each for each in known.views if each.verdict != "unknown"), None)
    if view is None or view.verdict == "not named":
        if place != node and (rejected := _not_named(known, found)):
            return rejected
        if view is None and place == node and known.attempts:
            return known.attempts[0].reason
        if view is None and (passed := _all_passed(known)):
            return passed
        why = view or next(iter(known.views), None)
        return why.detail if view and why else _unknown(known, why)
    if view.verdict == "rejected":
        evicting = "; evicting pods would not help" if view.unresolvable else ""
        without = "; it was placed without Moorage" if place == node else ""
        return f"{view.plugin} rejected it: {view.reason}{without or evicting}"
    return _feasible(known.filtered, view, is_chosen=place == node)


def _unknown(known: PodEvidence, view: NodeView | None) -> str:
    why = view.detail if view is not None else known.why_no_attempt
    return f"nothing is known about {known.node}: {why}"


def _all_passed(known: PodEvidence) -> str:
    """Return how a node fared on which no plugin was asked; "" if that is not known."""
    newest = known.filtered
    if newest is None or newest.filter is None or newest.filter.plugins:
        return ""
    if newest.filter.feasible < newest.cluster_nodes:
        return (
            f"kube-scheduler offered {newest.filter.nodes} of {newest.cluster_nodes} nodes, all of "
            "which Moorage let pass; whether this was one of them is not kept"
        )
    return f"it was feasible: {newest.reason}"


def _feasible(newest: Decision | None, view: NodeView, *, is_chosen: bool) -> str:
    reason = newest.reason if newest is not None else "it was feasible"
    if is_chosen or newest is None:
        return reason
    if view.rank and view.score is not None and newest.score is not None:
        best, total = newest.score.top[0], f"{view.score.total:.4g}"
        if view.score.total != best.total:
            tie = newest.claim is None and is_tie(newest.score, view.score.total)
            alike = f", a tie after rounding to {newest.score.scale} steps" if tie else ""
            lead = f"{best.node} has {best.total:.4g}{alike}"
            verb = "ties for" if view.tied else "is"
            return f"it {verb} Moorage's number {view.rank}, {total}; {lead}"
        if best.node == view.node and newest.score.best < 2:
            return f"it is Moorage's best node, {total}: {reason}"
        return f"it ties for Moorage's best total, {total}: {reason}"
    if newest.claim is not None:
        return f"it was feasible, and {newest.claim.node} was claimed: {reason}"
    return f"it was feasible; {view.detail or 'Moorage gave no scores'}"


def _not_named(known: PodEvidence, found: Rejections) -> str:
    """Return why kube-scheduler did not name a node, as far as its message has it.

    A pod that is unschedulable was tried on all nodes: so the node was rejected.
    """
    reasons = found.in_tree
    if not reasons:
        return ""
    which = reasons[0] if len(reasons) == 1 else f"one of: {', '.join(reasons)}"
    if known.lacks:
        which = ", ".join(known.lacks)
    return f"kube-scheduler rejected it before Moorage was asked: {which}"
