"""What is known about a pod: what the API shows of it, and what the gateway decided about it."""

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.errors import suggestion

Object = Mapping[str, Any]

UNTRIED = "kube-scheduler has not tried it yet; does one with this profile run?"

CLAIMS_UNREAD = "see whether its ResourceClaims exist, which the gateway may not read: "

PREEMPTED_BY = re.compile(r"Preempted by pod (\S+) on node ")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """A pod group.

    Attributes:
        name: Its name.
        needed: How many pods it needs at once; 0 if that is not known, or any number will do.
        nodes: For each member its node, "" for none.
    """

    name: str
    needed: int
    nodes: Sequence[str]

    @property
    def placed(self) -> int:
        """How many members have a node."""
        return sum(map(bool, self.nodes))

    @property
    def wanted(self) -> int:
        """How many members there are, or have to be."""
        return max(self.needed, len(self.nodes))

    def __str__(self) -> str:
        counts = Counter(filter(None, self.nodes))
        accepted = ", ".join(f"{node} accepted {count}" for node, count in counts.most_common())
        needed = f", {self.needed} needed at once" if self.needed else ""
        return (
            f"Pod group {self.name}: {self.placed}/{self.wanted} placed{needed}"
            f"{f'; nodes: {accepted}' if accepted else ''}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known about a pod.

    Attributes:
        pod: The pod as the API server has it.
        attempts: The gateway's attempts on this pod, as the admin port shows them, newest first.
        silence: Why there are no attempts: the gateway's own words, or why it cannot be asked.
        asked: Whether the gateway was asked.
        revision: The revision of the active policy; "" if it is not known.
        events: The pod's Events, newest first.
        group: The pod's group, if it has one.
        missing: The ResourceClaims that the pod names and that do not exist.
        has_claims: Whether those that it names are known to exist, all of them.
        lost_node: Whether the node that the pod is on does not exist.
        node: The node that is asked about; "" for none.
        views: What each attempt found out about that node, newest first.
        is_gone: Whether the pod exists no more; then only its names and its uid are known.
        bind: The pod's bind that is under way: its `node`, and where a plugin has it wait for
            others, the `plugin` and what is `awaited`; empty if there is none.
        is_outdated: Whether nodes that the newest verdicts are about have changed since.
        preemptor: The pod, as NAMESPACE/NAME, that kube-scheduler evicts this one for; "" if not
            known.
        holders: Other pods that hold nodes before the API server shows them there: the `pod`, its
            `node`, and the `plugins` that wanted that.
    """

    pod: Object
    attempts: Sequence[Object] = ()
    silence: str = ""
    asked: bool = True
    revision: str = ""
    events: Sequence[Object] = ()
    group: PodGroup | None = None
    missing: Sequence[str] = ()
    has_claims: bool = False
    node: str = ""
    views: Sequence[Object] = ()
    lost_node: bool = False
    is_gone: bool = False
    bind: Object = field(default_factory=dict)
    is_outdated: bool = False
    preemptor: str = ""
    holders: Sequence[Object] = ()

    @property
    def scheduled(self) -> Object:
        """The pod's condition PodScheduled; empty if it has none."""
        return scheduled_of(self.pod)

    @property
    def filtered(self) -> Object:
        """The newest attempt with verdicts; empty if there is none."""
        return next((each for each in self.attempts if each.get("filter")), {})


def silence(pod: Object, profiles: Collection[str]) -> str:
    """Return what a pod shows about why Moorage has decided nothing about it."""
    spec = pod["spec"]
    scheduler, node = spec.get("schedulerName", ""), spec.get("nodeName", "")
    if scheduler not in profiles:
        near = _near(scheduler, profiles)
        return f"its schedulerName is {scheduler}, which no profile serves{near}"
    if node:
        return f"it is bound to {node}; Moorage was not asked, or the gateway restarted since"
    if spec.get("schedulingGates"):
        return "it waits for its scheduling gates"
    scheduled = scheduled_of(pod)
    message = str(scheduled.get("message", "")).partition(". ")[0].rstrip(".")
    if not message:
        if claims := ", ".join(claims_of(pod)):
            return f"{CLAIMS_UNREAD}{claims}"
        return UNTRIED
    reported = f"kube-scheduler says {message}"
    if scheduled.get("reason") != "Unschedulable":
        return reported
    return f"{reported}; its own filters left no node, or the gateway restarted since"


def claims_of(pod: Object) -> list[str]:
    """Return the ResourceClaims that a pod names."""
    claims = pod["spec"].get("resourceClaims") or ()
    return [each["resourceClaimName"] for each in claims if each.get("resourceClaimName")]


def _near(scheduler: str, profiles: Collection[str]) -> str:
    """Return which profile may be meant, or the nearest, and how many others there are."""
    nearest = difflib.get_close_matches(scheduler, profiles, n=1, cutoff=0)
    more = f" and {len(profiles) - 1} more" if len(profiles) > 1 else ""
    return suggestion(scheduler, profiles) or f" (profiles: {(nearest or ['none'])[0]}{more})"


def preemptor_of(events: Iterable[Object]) -> str:
    """Return the uid of the pod for which kube-scheduler evicts one with these Events, else ""."""
    notes = (str(each.get("note", "")) for each in events if each["reason"] == "Preempted")
    by = next(filter(None, map(PREEMPTED_BY.match, notes)), None)
    return by[1] if by else ""


def last_seen(event: Object) -> str:
    """Return when an Event was last seen, in RFC 3339."""
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return next((str(each) for each in times if each), "")


def scheduled_of(pod: Object) -> Object:
    """Return a pod's condition PodScheduled; empty if it has none."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == "PodScheduled"), {})
