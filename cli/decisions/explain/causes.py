"""Finds the reason that decided about a pod, and what would have to change."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cli.decisions.explain.group import PodGroup
from cli.decisions.explain.message import Rejection
from cli.decisions.explain.node import about_node
from cli.decisions.explain.sources import Facts, last_seen
from cli.shared.gateway.finding import Object

RETRIED = "kube-scheduler tries it again when the cluster changes, at the latest after 5 min"

FIRST_BACKOFF, LONGEST_BACKOFF = timedelta(seconds=1), timedelta(seconds=10)
"""kube-scheduler's `podInitialBackoffSeconds` and `podMaxBackoffSeconds`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a pod is where it is.

    Attributes:
        headline: The reason that decided, in one sentence.
        since: Since when it has been so, in RFC 3339; "" if that is not known.
        facts: What it is concluded from.
        next: What would have to change, and what happens by itself.
    """

    headline: str
    since: str = ""
    facts: Facts
    next: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason, since when it holds, and what would have to change."""

    reason: str
    since: str = ""
    next: Sequence[str] = field(default_factory=tuple)


def explanation(facts: Facts) -> Explanation:
    """Return why the pod is where it is; why it is on a node or not, if one is asked about."""
    metadata, node = facts.pod["metadata"], facts.pod["spec"].get("nodeName") or ""
    name = f"{metadata['namespace']}/{metadata['name']}"
    if facts.is_gone:
        return Explanation(headline=f"{name} is gone: {_gone(facts)}", facts=facts)
    if facts.node:
        return Explanation(headline=f"{name} {about_node(facts, facts.node)}", facts=facts)
    cause = _bound(facts, node) if node else _pending(facts)
    place = f"is on {node}" if node else _waiting(facts)
    return Explanation(
        headline=f"{name} {place}: {cause.reason}", since=cause.since, facts=facts, next=cause.next
    )


def _waiting(facts: Facts) -> str:
    if facts.group is None:
        return "is pending"
    return f"is pending, {facts.group.placed}/{facts.group.wanted} of its pod group placed"


def _gone(facts: Facts) -> str:
    newest = facts.attempts[0]
    bind = newest.get("bind") or {}
    place = f"it was bound to {bind['node']}: " if bind and not bind.get("error") else ""
    return f"{place}{newest.get('reason') or 'Moorage had decided nothing about it'}"


def _bound(facts: Facts, node: str) -> Cause:
    since = facts.scheduled.get("lastTransitionTime") or ""
    decided = [each for each in facts.attempts if (each.get("bind") or {}).get("node") == node]
    tried = decided or [each for each in facts.attempts if each.get("filter")]
    if tried and tried[0].get("reason"):
        return Cause(tried[0]["reason"], since)
    if not facts.events and not since:
        return Cause("it was created with a nodeName, so no scheduler was asked")
    binder = next((_reporter(each) for each in facts.events if each["reason"] == "Scheduled"), "")
    by = f"{binder} bound it; " if binder else ""
    return Cause(f"{by}Moorage has no decision about it: {facts.silence}", since)


def _reporter(event: Object) -> str:
    source = event.get("deprecatedSource") or {}
    return str(event.get("reportingController") or source.get("component") or "")


def _pending(facts: Facts) -> Cause:
    spec, status = facts.pod["spec"], facts.pod.get("status") or {}
    condition = facts.scheduled
    if facts.pod["metadata"].get("deletionTimestamp"):
        return Cause("it is being deleted", facts.pod["metadata"]["deletionTimestamp"])
    if gates := [each["name"] for each in spec.get("schedulingGates") or ()]:
        return _gated(gates, facts)
    if nominated := status.get("nominatedNodeName"):
        return Cause(
            f"it is to run on {nominated} once the pods that kube-scheduler evicts for it are gone",
            condition.get("lastTransitionTime") or "",
            ["kube-scheduler binds it when they are; pods that end slowly hold it up"],
        )
    if facts.group and len(facts.group.nodes) < facts.group.needed:
        return _incomplete(facts, facts.group)
    if not condition:
        return _untried(facts)
    if condition.get("reason") == "Unschedulable":
        return _unschedulable(facts, condition)
    return _failing(facts, condition)


def _gated(gates: Sequence[str], facts: Facts) -> Cause:
    return Cause(
        f"it waits for its scheduling gates: {', '.join(gates)}",
        facts.pod["metadata"].get("creationTimestamp") or "",
        ["whoever set a gate has to remove it from spec.schedulingGates"],
    )


def _incomplete(facts: Facts, group: PodGroup) -> Cause:
    return Cause(
        f"pod group {group.name} has {len(group.nodes)} pods, and needs {group.needed} at once",
        facts.pod["metadata"].get("creationTimestamp") or "",
        [f"the other {group.needed - len(group.nodes)} pods have to be created"],
    )


def _untried(facts: Facts) -> Cause:
    since = facts.pod["metadata"].get("creationTimestamp") or ""
    scheduler = facts.pod["spec"].get("schedulerName") or "default-scheduler"
    if not facts.attempts:
        return Cause(
            f"no scheduler has tried it: {facts.silence}",
            since,
            [f"a scheduler with a profile {scheduler} has to run"],
        )
    newest = facts.attempts[0]
    if newest.get("claim") or newest.get("filter"):
        return Cause(f"its bind is under way, or waits for other pods: {newest['reason']}", since)
    return Cause("Moorage is deciding about it now", since)


def _failing(facts: Facts, condition: Object) -> Cause:
    """Return what is broken: an error, not a lack of nodes."""
    newest = facts.attempts[0] if facts.attempts else {}
    parts = (newest, newest.get("bindCheck") or {}, newest.get("bind") or {})
    broken = any(part.get("error") for part in parts)
    reason = newest["reason"] if broken else f"kube-scheduler failed: {condition.get('message')}"
    until = backoff_end(facts, datetime.now(UTC))
    waiting = f"; in backoff until about {until:%H:%M:%S}" if until else ""
    return Cause(
        f"{reason}{waiting}",
        condition.get("lastTransitionTime") or "",
        ["kube-scheduler tries it again after 1, 2, 4, 8 and then every 10 seconds"],
    )


def backoff_end(facts: Facts, now: datetime) -> datetime | None:
    """Return until when kube-scheduler waits after a failure, with its default settings.

    The wait is counted from the newest attempt, and doubles with each. None if it is over.
    """
    times = [each["time"] for each in facts.attempts]
    times += [last_seen(each) for each in facts.events if each["reason"] == "FailedScheduling"]
    if not times:
        return None
    last = max(map(datetime.fromisoformat, times))
    number = facts.attempts[0].get("attempt", 1) if facts.attempts else 1
    end = last + min(FIRST_BACKOFF * 2 ** min(number - 1, 10), LONGEST_BACKOFF)
    return end if end > now else None


def _unschedulable(facts: Facts, condition: Object) -> Cause:
    since = condition.get("lastTransitionTime") or ""
    found = facts.rejections
    if not found.parts:
        return Cause(str(condition.get("message")), since, [RETRIED])
    nodes = (
        f"none of {found.nodes} nodes suits it"
        if found.nodes != 1
        else "the only node does not suit it"
    )
    shown = ", ".join(map(str, found.parts))
    return Cause(f"{nodes}: {shown}", since, [*_steps(found.parts), RETRIED])


def _steps(parts: Sequence[Rejection]) -> list[str]:
    """Return what to change about the most frequent reason."""
    return [parts[0].step] if parts[0].step else []
