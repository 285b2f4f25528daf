"""Why a pod is where it is: the one object that people and programs get, and what it is made of.

The gateway works it out of what is known about the pod (`why.explain`). The admin port,
`moorage explain`, `moorage up`, the inspector and lists of pending pods show it. Where the gateway
is not reached, `moorage explain` does the same with what the user may read.
"""

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec

from gateway.cluster.pods import MESSAGE
from gateway.cycle.decision import Decision, Record
from gateway.decisions.nodes import NodeView
from moorage.errors import suggestion
from moorage.units.quantity import format_quantity

Object = Mapping[str, Any]

UNTRIED = "kube-scheduler has not tried it yet; does one with this profile run?"

CLAIMS_UNREAD = "see whether its ResourceClaims exist, which the gateway may not read: "

PREEMPTED_BY = re.compile(r"Preempted by pod (\S+) on node ")


class RejectedNodes(Record, omit_defaults=False):
    """A reason for which nodes were rejected.

    Attributes:
        nodes: How many nodes it concerns.
        reason: What it says.
        by: Who gave it: a plugin of Moorage, the gateway, or kube-scheduler; "" if not known.
        evicting: Whether evicting pods helps, in words; "" if nobody says so.
        cured_by: "capacity" if a new node would not be rejected; "" if it would, or nobody says.
    """

    nodes: int
    reason: str
    by: str
    evicting: str = ""
    cured_by: str = ""

    def __str__(self) -> str:
        return f"{self.nodes} {self.reason}{f' ({self.by})' if self.by else ''}"


class PodGroup(Record, omit_defaults=False):
    """A pod group of Kubernetes, `spec.schedulingGroup`.

    Attributes:
        name: Its name.
        needed: How many pods it needs at once; 0 if that is not known, or any number will do.
        nodes: For each member its node, "" for none.
    """

    name: str
    needed: int
    nodes: tuple[str, ...]

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


class EventItem(Record, omit_defaults=False):
    """An Event of the pod; `by` is who reported it."""

    time: str
    reason: str
    note: str
    by: str


class Explanation(Record, kw_only=True, omit_defaults=False):
    """Why a pod is where it is.

    Attributes:
        pod: The pod, as NAMESPACE/NAME.
        uid: Its uid.
        scheduler_name: The scheduler that it asks for.
        node: The node that it is on; "" for none.
        created: When it was made, in RFC 3339; "" if that is not known.
        place: Where it is, or that it is pending or gone.
        reason: The reason that decided.
        since: Since when it has been so, in RFC 3339; "" if that is not known.
        next: What would have to change, and what happens by itself.
        rejections: Why kube-scheduler found no node, the most frequent reason first.
        capacity: What `moorage capacity` has done for it, or why nothing; "" if nobody says.
        preemption: What came of looking for pods to evict; "" if nobody looked.
        group: The pod's group, if it has one.
        unread_claims: The ResourceClaims that it waits for, if the gateway may not read them.
        without: What could not be asked for it, and why; "" if everything was.
        why_no_attempt: Why there are no attempts: the gateway's own words, or why it is not asked.
        policy_revision: The revision of the active policy; "" if it is not known.
        tried: How many attempts on this very pod are kept.
        attempts: These, newest first; lists leave them out.
        views: What each attempt found out about the node that is asked about.
        events: The pod's Events, newest first; None if they could not be read.
    """

    pod: str
    uid: str = ""
    scheduler_name: str = ""
    node: str = ""
    created: str = ""
    place: str
    reason: str
    since: str = ""
    next: tuple[str, ...] = ()
    rejections: tuple[RejectedNodes, ...] = ()
    preemption: str = ""
    capacity: str = ""
    group: PodGroup | None = None
    unread_claims: tuple[str, ...] = ()
    without: str = ""
    why_no_attempt: str = ""
    policy_revision: str = ""
    tried: int = 0
    attempts: tuple[Decision, ...] = ()
    views: tuple[NodeView, ...] = ()
    events: tuple[EventItem, ...] | None = ()

    @property
    def headline(self) -> str:
        """The reason in one sentence."""
        return f"{self.pod} {self.place}: {self.reason}"


class Obstacle(NamedTuple):
    """What keeps a pod off a node that it may use.

    Attributes:
        kind: Of a resource the node may offer nothing, too little even when empty, or too little
            now; or it has no room for another pod, has a taint, or is cordoned.
        what: The resource or the taint.
    """

    kind: Literal["none", "small", "short", "pods", "tainted", "cordoned"]
    what: str = ""

    @property
    def reason(self) -> str:
        """What kube-scheduler calls it."""
        match self.kind:
            case "pods":
                return "Too many pods"
            case "tainted":
                return f"node(s) had untolerated taint {self.what}"
            case "cordoned":
                return "node(s) were unschedulable"
        return f"Insufficient {self.what}"


class Survey(msgspec.Struct, kw_only=True):
    """What the nodes lack for a pod.

    Attributes:
        nodes: How many nodes there are.
        usable: Those that the pod's selector and affinity allow.
        by_obstacles: The same by what keeps the pod off them; () has those that seem to suit it.
        requests: What the pod requests.
        largest: The most that a usable node has of each of these.
        names: The nodes that the pod's affinity names.
        lost: Those of them that do not exist.
        host: The host name that the pod's nodeSelector wants; "" for none.
        labels: The other labels that it wants.
    """

    nodes: int
    usable: list[str] = []
    by_obstacles: dict[tuple[Obstacle, ...], list[str]] = {}
    requests: Mapping[str, int]
    largest: dict[str, int] = {}
    names: list[str] = []
    lost: list[str] = []
    host: str = ""
    labels: dict[str, str] = {}

    def has(self, resource: str) -> bool:
        """Whether a usable node is large enough for what the pod requests."""
        return self.largest.get(resource, 0) >= self.requests.get(resource, 0)

    def amount(self, resource: str, *, largest: bool = False) -> str:
        """Return what the pod requests of a resource, or the *largest* node has."""
        amounts = self.largest if largest else self.requests
        return format_quantity(resource, amounts.get(resource, 0))


class Holder(NamedTuple):
    """A pod, as NAMESPACE/NAME, that holds a node, and the plugins that wanted that."""

    pod: str
    uid: str
    node: str
    plugins: Sequence[str]


@dataclass(slots=True, kw_only=True)
class PodEvidence:
    """What is known about a pod.

    Attributes:
        pod: The pod as the API server has it.
        attempts: The gateway's attempts on this pod, as they are shown, newest first.
        why_no_attempt: Why there are none: the gateway's own words, or why it cannot be asked.
        asked: Whether the gateway was asked.
        revision: The revision of the active policy; "" if it is not known.
        events: The pod's Events, newest first; None if they could not be read.
        group: The pod's group of Kubernetes, if it has one.
        gated: Pods of the group that a plugin sees which wait for scheduling gates.
        existing: How many pods of that group exist now; 0 if nobody has looked.
        missing: The ResourceClaims that the pod names and that do not exist.
        has_claims: Whether those that it names are known to exist, all of them.
        lost_node: The node that the pod is on or nominated to, if it does not exist; else "".
        node: The node that is asked about; "" for none.
        views: What each attempt found out about that node, newest first.
        is_gone: Whether the pod exists no more; then only its names and its uid are known.
        bind: The pod's bind that is under way: its `node`, and where a plugin has it wait for
            others, the `plugin` and what is `awaited`; empty if there is none.
        is_outdated: Whether nodes that the newest verdicts are about have changed since.
        preemptor: The pod, as NAMESPACE/NAME, that kube-scheduler evicts this one for; "" if not
            known.
        holders: Other pods that hold nodes before the API server shows them there.
        survey: What the nodes lack for the pod; None if nobody has looked.
        rejecting: Of some nodes that the pod may use, the plugin of Moorage that rejected them.
        lacks: Why kube-scheduler's own filters reject the node that is asked about, now.
        capacity: What `moorage capacity` has done for it, or why nothing; "" if nobody says.
    """

    pod: Object
    attempts: Sequence[Decision] = ()
    why_no_attempt: str = ""
    asked: bool = True
    revision: str = ""
    events: Sequence[Object] | None = ()
    group: PodGroup | None = None
    gated: Sequence[str] = ()
    existing: int = 0
    missing: Sequence[str] = ()
    has_claims: bool = False
    node: str = ""
    views: Sequence[NodeView] = ()
    lost_node: str = ""
    is_gone: bool = False
    bind: Object = field(default_factory=dict)
    is_outdated: bool = False
    preemptor: str = ""
    holders: Sequence[Holder] = ()
    survey: Survey | None = None
    rejecting: Mapping[str, str] = field(default_factory=dict)
    lacks: Sequence[str] = ()
    capacity: str = ""

    @property
    def scheduled(self) -> Object:
        """The pod's condition PodScheduled; empty if it has none."""
        return scheduled_of(self.pod)

    @property
    def filtered(self) -> Decision | None:
        """The newest attempt with verdicts; None if there is none."""
        return next((each for each in self.attempts if each.filter is not None), None)

    @property
    def preempted(self) -> Object:
        """The Event with which kube-scheduler evicted the pod; empty if there is none."""
        return next((each for each in self.events or () if is_preempted(each)), {})


def why_no_attempt(pod: Object, profiles: Collection[str]) -> str:
    """Return what a pod shows about why Moorage has decided nothing about it."""
    spec = pod["spec"]
    scheduler, node = spec.get("schedulerName") or "", spec.get("nodeName")
    if scheduler not in profiles:
        near = _near(scheduler, profiles)
        return f"its schedulerName is {scheduler}, which no profile serves{near}"
    if node:
        return f"it is bound to {node}; Moorage was not asked, or the gateway restarted since"
    if spec.get("schedulingGates"):
        return "it waits for its scheduling gates"
    scheduled = scheduled_of(pod)
    message = str(scheduled.get("message") or "").partition(". ")[0].rstrip(".")
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


def is_preempted(event: Object) -> bool:
    """Whether kube-scheduler evicts a pod with an Event; those of others need have no reason."""
    return event.get("reason") == "Preempted"


def preemptor_of(events: Iterable[Object]) -> str:
    """Return the uid of the pod for which kube-scheduler evicts one with these Events, else ""."""
    notes = (str(each.get("note", "")) for each in events if is_preempted(each))
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
    """Return a pod's condition PodScheduled, whose message ends early; empty if it has none."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    found: Object = next((each for each in conditions if each.get("type") == "PodScheduled"), {})
    return {**found, "message": str(found.get("message") or "")[:MESSAGE]} if found else {}


def reporter(event: Object) -> str:
    """Return who reported an Event; "" if it does not say."""
    source = event.get("deprecatedSource") or {}
    return str(event.get("reportingController") or source.get("component") or "")
