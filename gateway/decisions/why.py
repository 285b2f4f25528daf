"""Finds the reason that decided about a pod, and what would have to change.

The gateway does so, for all who ask. Where it is not reached, `moorage explain` calls the same with
what the user may read.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from gateway.cycle.decision import Decision, GroupRecord
from gateway.decisions.advice import advice, uncordoning
from gateway.decisions.explanation import (
    EventItem,
    Explanation,
    Object,
    PodEvidence,
    PodGroup,
    claims_of,
    last_seen,
    reporter,
)
from gateway.decisions.rejections import (
    KUBE_SCHEDULER,
    STEPS,
    Rejections,
    about,
    first_step,
    on_node,
    rejections,
)
from gateway.decisions.sentences import SHOWN, group_evidence, group_sentence, group_steps

RETRIED = "kube-scheduler tries it again when the cluster changes, at the latest after 5 min"

BACKOFF = "kube-scheduler tries it again after 1, 2, 4, 8 and then every 10 seconds"

GROUP_BACKOFF = (
    "kube-scheduler tries a pod group again at once; the gateway holds its binds back, longer "
    "after each failure, up to 8 s"
)

AT_EXTENDER = "see whether the gateway runs and kube-scheduler reaches it: `moorage doctor`"

FIRST_BACKOFF, LONGEST_BACKOFF = timedelta(seconds=1), timedelta(seconds=10)
"""kube-scheduler's `podInitialBackoffSeconds` and `podMaxBackoffSeconds`."""

OLD_SECONDS = 90.0
"""From this age on a state is worth a word: the API server sends something once a minute."""

JUDGED_AGAIN = "wait: the gateway has it tried again by what has changed, within a minute or so"

ABOUT_NO_NODE = re.compile(r"0/\d+ nodes are available: ")

FAILURES = (
    (r"(filter|scorer|binder) service is not available", "see /readyz of the gateway: why no {0}"),
    (r"the binder is not reached", "see whether the binder runs: `moorage doctor`"),
    (
        r"plugin (\S+?):? (?:failed|does not start|ran for it)",
        "mend plugin {0}; with failurePolicy: Ignore pods are placed without it",
    ),
    (r"plugin (\S+): waited", "what plugin {0} waits for has to come within its time"),
    (r"plugin (\S+): ", "what plugin {0} asks for has to change"),
    (r"connection refused|no such host|deadline exceeded|EOF|reset by peer", AT_EXTENDER),
    (
        r"ValidatingAdmissionPolicy '([^']+)'",
        "change what ValidatingAdmissionPolicy {0} refuses, or have who runs the cluster change it",
    ),
    (
        r"API server answered 40[13]",
        "give the binder the right that the API server names, or change the webhook that refuses",
    ),
    (r"[Dd]eadline|time ran out|API server", "see whether the API server answers the binder"),
)
"""What helps against errors: the first one that matches."""


class _Cause(NamedTuple):
    """A reason, since when it holds, and what would have to change."""

    reason: str
    since: str = ""
    next: Sequence[str] = ()


def explain(known: PodEvidence) -> Explanation:
    """Return why the pod is where it is; why it is on a node or not, if one is asked about."""
    metadata, spec = known.pod["metadata"], known.pod["spec"]
    node = spec.get("nodeName") or ""
    found = rejections(known.scheduled, known.filtered, asked=known.asked)
    if known.is_gone:
        place, cause = "is gone", _gone(known)
    elif known.node:
        place, cause = about(node, known.node), _Cause(on_node(known, found, node))
    elif node:
        lost = ", a node that does not exist" if known.lost_node else ""
        place, cause = f"is on {node}{lost}", _bound(known, node)
    else:
        place, cause = _waiting(known.group), _pending(known, found)
    return Explanation(
        pod=f"{metadata['namespace']}/{metadata['name']}",
        uid=metadata.get("uid") or "",
        scheduler_name=spec.get("schedulerName") or "",
        node=node,
        created=metadata.get("creationTimestamp") or "",
        place=place,
        reason=cause.reason,
        since=cause.since,
        next=tuple(cause.next),
        rejections=tuple(found.parts),
        preemption=found.preemption,
        capacity=known.capacity,
        group=known.group,
        unread_claims=tuple(_unread_claims(known)),
        why_no_attempt=known.why_no_attempt,
        policy_revision=known.revision,
        tried=len(known.attempts),
        attempts=tuple(known.attempts),
        views=tuple(known.views),
        events=None if known.events is None else tuple(map(event_item, known.events)),
    )


def event_item(event: Object) -> EventItem:
    """Return an Event as an explanation has it."""
    return EventItem(
        time=last_seen(event),
        reason=event.get("reason") or "",
        note=event.get("note") or "",
        by=reporter(event),
    )


def _unread_claims(known: PodEvidence) -> Sequence[str]:
    """Return the ResourceClaims that a pod which nobody has tried waits for, if not known."""
    is_known = known.has_claims or known.missing or known.is_gone or known.scheduled
    return () if is_known else claims_of(known.pod)


def _waiting(group: PodGroup | None) -> str:
    if group is None:
        return "is pending"
    return f"is pending, {group.placed}/{group.wanted} of its pod group placed"


def _gone(known: PodEvidence) -> _Cause:
    if evicted := _evicted(known):
        return _Cause(f"kube-scheduler evicted it {evicted}", last_seen(known.preempted), [REMADE])
    newest = known.attempts[0]
    bind = newest.bind
    place = f"it was bound to {bind.node}: " if bind is not None and not bind.error else ""
    return _Cause(f"{place}{newest.reason or 'Moorage had decided nothing about it'}")


def _evicted(known: PodEvidence) -> str:
    """Return for whom kube-scheduler evicts the pod; "" if it does not."""
    conditions = (known.pod.get("status") or {}).get("conditions") or ()
    if not known.preempted and all(
        each.get("reason") != "PreemptionByScheduler" for each in conditions
    ):
        return ""
    name = f"{known.preemptor}, " if known.preemptor else ""
    return f"to make room for {name}a more important pod"


# ---- pods that have a node


REMADE = "what made it creates another one; raise its priority to keep it"


def _bound(known: PodEvidence, node: str) -> _Cause:
    since = known.scheduled.get("lastTransitionTime") or ""
    if known.lost_node:
        step = f"create node {node}, or delete the pod: nothing moves it"
        return _Cause("no kubelet runs it there", since, [step])
    if evicted := _evicted(known):
        return _Cause(f"kube-scheduler evicts it {evicted}", since, [REMADE])
    for each in known.attempts:
        if each.bind is not None and each.bind.node == node:
            return _Cause(each.reason, since)
    tried = next((each for each in known.attempts if each.filter or each.error), None)
    if tried is not None and tried.error:
        return _Cause(f"it was placed without Moorage: {tried.reason}", since)
    if tried is not None and tried.filter is not None and not tried.filter.feasible:
        why = tried.reason.removeprefix("no node suits it: ")
        return _Cause(f"it was placed without Moorage, which had rejected it: {why}", since)
    if tried is not None and tried.reason:
        return _Cause(tried.reason, since)
    if not known.events and not since:
        return _Cause("it was created with a nodeName, so no scheduler was asked")
    events = known.events or ()
    binder = next((reporter(each) for each in events if each.get("reason") == "Scheduled"), "")
    by = f"{binder} bound it; " if binder else ""
    return _Cause(f"{by}Moorage has no decision about it: {known.why_no_attempt}", since)


# ---- pods that wait


def _pending(known: PodEvidence, found: Rejections) -> _Cause:
    metadata, spec, status = known.pod["metadata"], known.pod["spec"], known.pod.get("status") or {}
    created, condition = metadata.get("creationTimestamp") or "", known.scheduled
    if metadata.get("deletionTimestamp"):
        return _Cause("it is being deleted", metadata["deletionTimestamp"])
    if known.bind:
        return _binding(known, created)
    if gates := [each["name"] for each in spec.get("schedulingGates") or ()]:
        return _Cause(
            f"it waits for its scheduling gates: {', '.join(gates)}",
            created,
            ["whoever set a gate has to remove it from spec.schedulingGates"],
        )
    nominated = status.get("nominatedNodeName")
    if nominated and not known.lost_node:
        return _Cause(
            f"it is to run on {nominated} once the pods that kube-scheduler evicts for it are gone",
            condition.get("lastTransitionTime") or "",
            ["kube-scheduler binds it when they are; pods that end slowly hold it up"],
        )
    if (group := known.group) and len(group.nodes) < group.needed:
        return _Cause(
            f"pod group {group.name} has {len(group.nodes)} pods, and needs {group.needed} at once",
            created,
            [f"the other {group.needed - len(group.nodes)} pods have to be created"],
        )
    if not condition:
        return _untried(known, created)
    if condition.get("reason") == "Unschedulable":
        return _unschedulable(known, found)
    return _failing(known)


def _binding(known: PodEvidence, created: str) -> _Cause:
    """Return how far the bind is that is under way."""
    node, plugin, awaited = (known.bind.get(key, "") for key in ("node", "plugin", "awaited"))
    if plugin:
        return _Cause(
            f"its bind to {node} waits: {plugin} waits for {awaited}",
            created,
            [f"{plugin} lets it go on once they are there; else it fails, and is tried again"],
        )
    decided = f": {known.attempts[0].reason}" if known.attempts else ""
    return _Cause(
        f"its bind to {node} is under way{decided}",
        created,
        ["it takes milliseconds; if not, see whether the API server answers the binder"],
    )


def _untried(known: PodEvidence, created: str) -> _Cause:
    if missing := [*known.missing, *_claims_not_made(known.pod)]:
        return _Cause(
            f"it waits for ResourceClaims that do not exist: {', '.join(missing)}",
            created,
            ["they have to be created, or spec.resourceClaims has to name others"],
        )
    if not known.attempts:
        scheduler = known.pod["spec"].get("schedulerName") or "default-scheduler"
        claims = () if known.has_claims else claims_of(known.pod)
        return _Cause(
            f"no scheduler has tried it: {known.why_no_attempt}",
            created,
            [
                f"a scheduler with a profile {scheduler} has to run",
                *(f"ResourceClaim {name} has to exist" for name in claims),
            ],
        )
    newest = known.attempts[0]
    if newest.claim or newest.filter:
        return _Cause(
            f"kube-scheduler has yet to bind it: {newest.reason}",
            created,
            ["kube-scheduler binds it, or tries it again, within seconds; see its log if not"],
        )
    return _Cause("Moorage is deciding about it now", created)


def _claims_not_made(pod: Object) -> Iterator[str]:
    """Yield the claims that a controller has yet to make from templates."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    made = {each["name"] for each in statuses}
    for claim in pod["spec"].get("resourceClaims") or ():
        if (template := claim.get("resourceClaimTemplateName")) and claim["name"] not in made:
            yield f"{claim['name']} (of template {template})"


def _failing(known: PodEvidence) -> _Cause:
    """Return what is broken: an error, not a lack of nodes."""
    message = str(known.scheduled.get("message") or "")
    broken = [each for each in known.attempts if _error(each)]
    newest = next((each for each in broken if _error(each) in message), None)
    if newest is None and broken and broken[0] is known.attempts[0]:
        newest = broken[0]
    reason = newest.reason if newest else f"kube-scheduler failed: {message}"
    is_grouped = bool(known.pod["spec"].get("schedulingGroup"))
    until = None if is_grouped else backoff_end(known, datetime.now(UTC))
    waiting = f"; in backoff until about {until:%H:%M:%S}" if until else ""
    since = known.scheduled.get("lastTransitionTime") or ""
    again = GROUP_BACKOFF if is_grouped else BACKOFF
    return _Cause(f"{reason}{waiting}", since, [*first_step(FAILURES, reason), again])


def _error(attempt: Decision) -> str:
    parts = (attempt, attempt.bind_check, attempt.bind)
    return next((part.error for part in parts if part is not None and part.error), "")


def backoff_end(known: PodEvidence, now: datetime) -> datetime | None:
    """Return until when kube-scheduler waits after a failure, with its default settings.

    The wait is counted from the newest attempt, and doubles with each. None if it is over.
    """
    times = [each.time for each in known.attempts]
    failed = (each for each in known.events or () if each.get("reason") == "FailedScheduling")
    times += [datetime.fromisoformat(last_seen(each)) for each in failed]
    if not times:
        return None
    last = max(times)
    number = (known.attempts[0].attempt or 1) if known.attempts else 1
    end = last + min(FIRST_BACKOFF * 2 ** min(number - 1, 10), LONGEST_BACKOFF)
    return end if end > now else None


def _unschedulable(known: PodEvidence, found: Rejections) -> _Cause:
    since = known.scheduled.get("lastTransitionTime") or ""
    unasked = () if known.asked else [f"who rejected them is not known: {known.why_no_attempt}"]
    more = "".join(f"; {each}" for each in (*_held(known), *_outdated(known), *unasked))
    more += f"; {known.capacity}" if known.capacity else ""
    if known.lost_node:
        more += f"; node {known.lost_node}, which was nominated for it, does not exist any more"
    trial = known.filtered.group if known.filtered is not None else None
    if trial is not None and not trial.fits:
        evidence = "".join(f"; {each}" for each in group_evidence(trial, known.gated))
        reason = f"{group_sentence(trial)}{evidence}{more}"
        return _Cause(reason, since, [*_group_steps(known, trial), RETRIED])
    if not found.parts:  # about the pod, not about nodes
        text = str(known.scheduled.get("message") or "its scheduler does not say why")
        if about := ABOUT_NO_NODE.match(text):
            text = f"{text[about.end() :].partition('. ')[0].rstrip('.')} ({KUBE_SCHEDULER})"
        return _Cause(f"{text}{more}", since, [*first_step(STEPS, text), RETRIED])
    nodes = (
        f"none of {found.nodes} nodes suits it"
        if found.nodes != 1
        else "the only node does not suit it"
    )
    shown = ", ".join(map(str, found.parts))
    again = [JUDGED_AGAIN] if known.is_outdated or _policy_changed(known) else []
    # What was asked for by another policy may not be any more.
    steps = [] if _policy_changed(known) else advice(found.parts, known.survey, known.rejecting)
    return _Cause(f"{nodes}: {shown}{more}", since, [*again, *steps, RETRIED])


def _group_steps(known: PodEvidence, trial: GroupRecord) -> list[str]:
    """Return what would help a group; where uncordoning does, that first."""
    steps, cordoned = (
        group_steps(trial, known.gated, known.existing),
        sorted(uncordoning(known.survey)),
    )
    if not (cordoned and trial.failing):
        return steps
    if not trial.more_nodes:
        return [f"uncordon {' or '.join(cordoned[:SHOWN])}", *steps]
    if len(cordoned) < trial.more_nodes:
        return steps
    return [f"uncordon {', '.join(cordoned[: trial.more_nodes])}: then it starts", *steps]


def _held(known: PodEvidence) -> Iterator[str]:
    """Yield which pods hold nodes that a plugin has rejected because of them, as far as known."""
    filtered = known.filtered
    plugins = filtered.filter.plugins if filtered is not None and filtered.filter else ()
    rejecting = {each.plugin for each in plugins if each.rejected}
    held = [each for each in known.holders if not rejecting.isdisjoint(each.plugins)]
    if held:
        shown = ", ".join(f"{each.node} by {each.pod}" for each in held[:SHOWN])
        more = f" and {len(held) - SHOWN} others" if len(held) > SHOWN else ""
        yield f"held by pods that are not bound yet: {shown}{more}"


def _outdated(known: PodEvidence) -> Iterator[str]:
    """Yield why the newest verdicts may be wrong by now."""
    filtered = known.filtered
    if filtered is None:
        return
    if _policy_changed(known):
        yield f"decided by policy {filtered.policy_revision}, and {known.revision} is active since"
    if known.is_outdated:
        yield "nodes have changed since that verdict"
    elif filtered.snapshot_age_seconds > OLD_SECONDS:
        yield (
            "the gateway had heard nothing of the cluster for "
            f"{filtered.snapshot_age_seconds:.0f} s then, see its /readyz"
        )


def _policy_changed(known: PodEvidence) -> bool:
    decided_by = known.filtered.policy_revision if known.filtered is not None else ""
    return bool(decided_by and known.revision and decided_by != known.revision)
