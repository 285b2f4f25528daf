"""Why a pod is where it is: the one object that people and programs get.

The gateway works it out of what it knows (`why.explain`). The admin port, `moorage explain`,
`moorage up`, the inspector and lists of pending pods show it.
"""

from collections import Counter

from gateway.cycle.decision import Decision, Record
from gateway.decisions.nodes import NodeView


class RejectedNodes(Record, omit_defaults=False):
    """A reason for which nodes were rejected.

    Attributes:
        nodes: How many nodes it concerns.
        reason: What it says.
        by: Who gave it: a plugin of Moorage, the gateway, or kube-scheduler; "" if not known.
        evicting: Whether evicting pods helps, in words; "" if nobody says so.
    """

    nodes: int
    reason: str
    by: str
    evicting: str = ""

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
