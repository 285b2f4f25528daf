"""Finds the reason that decided about a pod, and what would have to change.

The gateway does so for whoever asks it, and `moorage explain` with what only users may read:
Events, pod groups, ResourceClaims. Everything is as the APIs show it, so neither needs more.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.decisions.groups import group_evidence, group_sentence, group_steps, trial_of
from gateway.decisions.known import Known, Object, PodGroup, claims_of, last_seen
from gateway.decisions.rejections import (
    KUBE_SCHEDULER,
    NO_REJECTIONS,
    STEPS,
    Rejections,
    first_step,
    rejections,
    selector_step,
)

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

LATE_SECONDS = 1.0
"""From this age on a state is worth a word if what changed came in after it."""

JUDGED_AGAIN = "wait: the gateway has it tried again by what has changed, within a minute or so"

SHOWN_HOLDERS = 3
"""Pods that a sentence names which hold nodes."""

ABOUT_NO_NODE = re.compile(r"0/\d+ nodes are available: ")

FAILURES = (
    (r"(filter|scorer|binder) service is not available", "see /readyz of the gateway: why no {0}"),
    (r"the binder is not reached", "see whether the binder runs: `moorage doctor`"),
    (
        r"plugin (\S+?):? (?:failed|does not start)",
        "mend plugin {0}; with failurePolicy: Ignore pods are placed without it",
    ),
    (r"plugin (\S+): waited", "what plugin {0} waits for has to come within its time"),
    (r"plugin (\S+): ", "what plugin {0} asks for has to change"),
    (r"connection refused|no such host|deadline exceeded|EOF|reset by peer", AT_EXTENDER),
    (r"[Dd]eadline|time ran out|API server", "see whether the API server answers the binder"),
)
"""What helps against errors: the first one that matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a pod is where it is.

    Attributes:
        pod: The pod, as NAMESPACE/NAME.
        place: Where it is, or that it is pending or gone.
        reason: The reason that decided.
        since: Since when it has been so, in RFC 3339; "" if that is not known.
        next: What would have to change, and what happens by itself.
        rejections: Why kube-scheduler found no node.
    """

    pod: str
    place: str
    reason: str
    since: str = ""
    next: Sequence[str] = ()
    rejections: Rejections = NO_REJECTIONS

    @property
    def headline(self) -> str:
        """The reason in one sentence."""
        return f"{self.pod} {self.place}: {self.reason}"

    def content(self) -> dict[str, Any]:
        """Return it as JSON-like content."""
        return {
            "pod": self.pod,
            "place": self.place,
            "reason": self.reason,
            "since": self.since,
            "next": list(self.next),
            "rejections": [
                {"nodes": part.nodes, "reason": part.reason, "by": part.by}
                for part in self.rejections.parts
            ],
            "preemption": self.rejections.preemption,
        }


@dataclass(frozen=True, slots=True)
class _Cause:
    """A reason, since when it holds, and what would have to change."""

    reason: str
    since: str = ""
    next: Sequence[str] = ()


def explanation(known: Known) -> Explanation:
    """Return why the pod is where it is; why it is on a node or not, if one is asked about."""
    metadata, node = known.pod["metadata"], known.pod["spec"].get("nodeName") or ""
    found = rejections(known.scheduled, known.filtered, asked=known.asked)
    if known.is_gone:
        place, cause = "is gone", _gone(known)
    elif known.node:
        place, cause = _about(node, known.node), _Cause(_on_node(known, found, node))
    elif node:
        lost = ", a node that does not exist" if known.lost_node else ""
        place, cause = f"is on {node}{lost}", _bound(known, node)
    else:
        place, cause = _waiting(known.group), _pending(known, found)
    return Explanation(
        pod=f"{metadata['namespace']}/{metadata['name']}",
        place=place,
        reason=cause.reason,
        since=cause.since,
        next=cause.next,
        rejections=found,
    )


def _waiting(group: PodGroup | None) -> str:
    if group is None:
        return "is pending"
    return f"is pending, {group.placed}/{group.wanted} of its pod group placed"


def _gone(known: Known) -> _Cause:
    if evicted := _evicted(known):
        return _Cause(
            f"kube-scheduler evicted it {evicted}", last_seen(_preempted(known)), [REMADE]
        )
    newest = known.attempts[0]
    bind = newest.get("bind") or {}
    place = f"it was bound to {bind['node']}: " if bind and not bind.get("error") else ""
    return _Cause(f"{place}{newest.get('reason') or 'Moorage had decided nothing about it'}")


def _preempted(known: Known) -> Object:
    """Return the Event with which kube-scheduler evicted the pod; empty if there is none."""
    return next((each for each in known.events if each["reason"] == "Preempted"), {})


def _evicted(known: Known) -> str:
    """Return for whom kube-scheduler evicts the pod; "" if it does not."""
    conditions = (known.pod.get("status") or {}).get("conditions") or ()
    event = _preempted(known)
    if not event and all(each.get("reason") != "PreemptionByScheduler" for each in conditions):
        return ""
    name = f"{known.preemptor}, " if known.preemptor else ""
    return f"to make room for {name}a more important pod"


# ---- pods that have a node


REMADE = "what made it creates another one; raise its priority to keep it"


def _bound(known: Known, node: str) -> _Cause:
    since = known.scheduled.get("lastTransitionTime") or ""
    if known.lost_node:
        step = f"create node {node}, or delete the pod: nothing moves it"
        return _Cause("no kubelet runs it there", since, [step])
    if evicted := _evicted(known):
        return _Cause(f"kube-scheduler evicts it {evicted}", since, [REMADE])
    attempts = (each for each in known.attempts if (each.get("bind") or {}).get("node") == node)
    if decided := next(attempts, None):
        return _Cause(decided["reason"], since)
    tried = next((each for each in known.attempts if each.get("filter") or each.get("error")), {})
    if tried.get("error"):
        return _Cause(f"it was placed without Moorage: {tried['reason']}", since)
    if tried and not tried["filter"]["feasible"]:
        why = tried["reason"].removeprefix("no node suits it: ")
        return _Cause(f"it was placed without Moorage, which had rejected it: {why}", since)
    if tried.get("reason"):
        return _Cause(tried["reason"], since)
    if not known.events and not since:
        return _Cause("it was created with a nodeName, so no scheduler was asked")
    binder = next((reporter(each) for each in known.events if each["reason"] == "Scheduled"), "")
    by = f"{binder} bound it; " if binder else ""
    return _Cause(f"{by}Moorage has no decision about it: {known.silence}", since)


def reporter(event: Object) -> str:
    """Return who reported an Event; "" if it does not say."""
    source = event.get("deprecatedSource") or {}
    return str(event.get("reportingController") or source.get("component") or "")


# ---- pods that wait


def _pending(known: Known, found: Rejections) -> _Cause:
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
    if nominated := status.get("nominatedNodeName"):
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


def _binding(known: Known, created: str) -> _Cause:
    """Return how far the bind is that is under way."""
    node, plugin, awaited = (known.bind.get(key, "") for key in ("node", "plugin", "awaited"))
    if plugin:
        return _Cause(
            f"its bind to {node} waits: {plugin} waits for {awaited}",
            created,
            [f"{plugin} lets it go on once they are there; else it fails, and is tried again"],
        )
    decided = f": {known.attempts[0]['reason']}" if known.attempts else ""
    return _Cause(
        f"its bind to {node} is under way{decided}",
        created,
        ["it takes milliseconds; if not, see whether the API server answers the binder"],
    )


def _untried(known: Known, created: str) -> _Cause:
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
            f"no scheduler has tried it: {known.silence}",
            created,
            [
                f"a scheduler with a profile {scheduler} has to run",
                *(f"ResourceClaim {name} has to exist" for name in claims),
            ],
        )
    newest = known.attempts[0]
    if newest.get("claim") or newest.get("filter"):
        return _Cause(
            f"kube-scheduler has yet to bind it: {newest['reason']}",
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


def _failing(known: Known) -> _Cause:
    """Return what is broken: an error, not a lack of nodes."""
    message = str(known.scheduled.get("message", ""))
    broken = [each for each in known.attempts if _error(each)]
    newest = next((each for each in broken if _error(each) in message), None)
    if newest is None and broken and broken[0] is known.attempts[0]:
        newest = broken[0]
    reason = newest["reason"] if newest else f"kube-scheduler failed: {message}"
    is_grouped = bool(known.pod["spec"].get("schedulingGroup"))
    until = None if is_grouped else backoff_end(known, datetime.now(UTC))
    waiting = f"; in backoff until about {until:%H:%M:%S}" if until else ""
    since = known.scheduled.get("lastTransitionTime") or ""
    again = GROUP_BACKOFF if is_grouped else BACKOFF
    return _Cause(f"{reason}{waiting}", since, [*first_step(FAILURES, reason), again])


def _error(attempt: Object) -> str:
    parts = (attempt, attempt.get("bindCheck") or {}, attempt.get("bind") or {})
    return next((str(part["error"]) for part in parts if part.get("error")), "")


def backoff_end(known: Known, now: datetime) -> datetime | None:
    """Return until when kube-scheduler waits after a failure, with its default settings.

    The wait is counted from the newest attempt, and doubles with each. None if it is over.
    """
    times = [each["time"] for each in known.attempts]
    times += [last_seen(each) for each in known.events if each["reason"] == "FailedScheduling"]
    if not times:
        return None
    last = max(map(datetime.fromisoformat, times))
    number = known.attempts[0].get("attempt", 1) if known.attempts else 1
    end = last + min(FIRST_BACKOFF * 2 ** min(number - 1, 10), LONGEST_BACKOFF)
    return end if end > now else None


def _unschedulable(known: Known, found: Rejections) -> _Cause:
    since = known.scheduled.get("lastTransitionTime") or ""
    unasked = () if known.asked else [f"who rejected them is not known: {known.silence}"]
    more = "".join(f"; {each}" for each in (*_held(known), *_outdated(known), *unasked))
    if (trial := trial_of(known.filtered)) is not None and not trial.fits:
        evidence = "".join(f"; {each}" for each in group_evidence(trial))
        reason = f"{group_sentence(trial)}{evidence}{more}"
        return _Cause(reason, since, [*group_steps(trial), RETRIED])
    if not found.parts:  # about the pod, not about nodes
        text = str(known.scheduled.get("message"))
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
    step = selector_step(known.pod, found.parts[0]) or found.parts[0].step
    if _policy_changed(known):  # what was asked for may not be any more
        step = ""
    return _Cause(f"{nodes}: {shown}{more}", since, [*again, *([step] if step else []), RETRIED])


def _held(known: Known) -> Iterator[str]:
    """Yield which pods hold nodes that a plugin has rejected because of them, as far as known."""
    plugins = (known.filtered.get("filter") or {}).get("plugins") or ()
    rejecting = {each["plugin"] for each in plugins if each.get("rejected")}
    held = [each for each in known.holders if not rejecting.isdisjoint(each["plugins"])]
    if held:
        shown = ", ".join(f"{each['node']} by {each['pod']}" for each in held[:SHOWN_HOLDERS])
        more = f" and {len(held) - SHOWN_HOLDERS} others" if len(held) > SHOWN_HOLDERS else ""
        yield f"held by pods that are not bound yet: {shown}{more}"


def _outdated(known: Known) -> Iterator[str]:
    """Yield why the newest verdicts may be wrong by now."""
    if _policy_changed(known):
        decided_by = known.filtered["policyRevision"]
        yield f"decided by policy {decided_by}, and {known.revision} is active since"
    age = known.filtered.get("snapshotAgeSeconds", 0.0)
    if known.is_outdated:
        late = f", by a view of the cluster that was {age:.0f} s old" if age >= LATE_SECONDS else ""
        yield f"nodes have changed since that verdict{late}"
    elif age > OLD_SECONDS:
        yield (
            f"the gateway had heard nothing of the cluster for {age:.0f} s then, see its /readyz"
        )


def _policy_changed(known: Known) -> bool:
    decided_by = known.filtered.get("policyRevision", "")
    return bool(decided_by and known.revision and decided_by != known.revision)


# ---- one node


def _about(place: str, node: str) -> str:
    if place == node:
        return f"is on {node}"
    return f"is not on {node} but on {place}" if place else f"is not on {node}"


def _on_node(known: Known, found: Rejections, place: str) -> str:
    """Return why the pod is on one node, or why not."""
    node = known.node
    view = next((each for each in known.views if each["verdict"] != "unknown"), None)
    if view is None and not known.attempts and (rejected := _not_named(found)):
        return rejected
    if view is None:
        why = known.views[0].get("detail", "") if known.views else known.silence
        return f"nothing is known about {node}: {why}"
    if view["verdict"] == "rejected":
        evicting = "; evicting pods would not help" if view.get("unresolvable") else ""
        without = "; it was placed without Moorage" if place == node else ""
        return f"{view['plugin']} rejected it: {view['reason']}{without or evicting}"
    if view["verdict"] == "not named":
        return _not_named(found) or str(view["detail"])
    return _feasible(known.filtered, view, is_chosen=place == node)


def _feasible(newest: Object, view: Object, *, is_chosen: bool) -> str:
    reason = newest.get("reason", "it was feasible")
    if is_chosen:
        return str(reason)
    rank, score = view.get("rank", 0), view.get("score") or {}
    if rank == 1:
        return f"it is Moorage's best node, {score['total']:.4g}: {newest.get('reason', '')}"
    if rank:
        best, total = newest["score"]["top"][0], f"{score['total']:.4g}"
        if score["total"] == best["total"]:
            return f"its total is {total}, as that of {best['node']}: {newest.get('reason', '')}"
        return f"it is Moorage's number {rank}, {total}; {best['node']} has {best['total']:.4g}"
    if claim := newest.get("claim"):
        return f"it was feasible, but {claim['node']} was claimed for {', '.join(claim['plugins'])}"
    return f"it was feasible; {view.get('detail') or 'Moorage gave no scores'}"


def _not_named(found: Rejections) -> str:
    """Return why kube-scheduler did not name a node, as far as its message has it.

    A pod that is unschedulable was tried on all nodes: so the node was rejected.
    """
    reasons = found.in_tree
    if not reasons:
        return ""
    which = reasons[0] if len(reasons) == 1 else f"one of: {', '.join(reasons)}"
    return f"kube-scheduler rejected it before Moorage was asked: {which}"
