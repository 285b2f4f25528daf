"""The records of decisions, as the admin port shows them."""

from datetime import datetime
from typing import Literal

import msgspec

from moorage.groups import ReasonNodes

PhaseName = Literal["filter", "score"]

Outcome = Literal[
    "bound", "binding", "deciding", "unschedulable", "failed", "bind failed", "preempting"
]
"""What became of an attempt.

bound: The pod is bound.
binding: A node was found; no bind has come yet.
deciding: Its cycle is under way.
unschedulable: No node is feasible.
failed: kube-scheduler got an error.
bind failed: The bind was refused, or its outcome is not known.
preempting: kube-scheduler asked where evicting pods would help.
"""

Cause = Literal[
    "no decision",
    "earlier term",
    "other policy",
    "claim lost",
    "unknown node",
    "not feasible",
    "pod changed",
    "node changed",
]
"""Why a node is checked again at the bind."""


UNKNOWN_NODE = "node(s) not known to Moorage yet"
"""The reason of nodes that kube-scheduler names and the gateway has not seen."""


class Record(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A part of a decision, as `GET /decisions/NAMESPACE/POD` shows it.

    Nothing in it refers back to it, so the garbage collector may ignore it.
    """


class ReasonCount(Record):
    """How many nodes were rejected for one reason, and what would cure it."""

    reason: str
    nodes: int
    unresolvable: bool
    cured_by: str = ""


class PluginRecord(Record):
    """What a plugin did: how long it took, and how many nodes it rejected for which reasons.

    `note` is what the plugin itself has to say about the cycle. `version`, a digest of its code, is
    looked up when the record is shown, by the version of the phase.
    """

    plugin: str
    seconds: float
    rejected: int = 0
    reasons: list[ReasonCount] = []
    skipped: bool = False
    failure: str = ""
    note: str = ""
    version: str = ""


class FilterRecord(Record):
    """The filter phase of a cycle. Nodes are counts; seconds are the replica's own time.

    `version` is a digest of the code of all plugins of the replica.

    `claimants` are the plugins that want the pod to claim its node at once; `shards` is how many
    replicas shared the nodes. The verdicts on `cached_nodes` came from the cache: they were given
    for equal pods, of which `cached_from` is the newest, as NAMESPACE/NAME. On `nominated_nodes`
    the pods that are nominated for them were counted too.
    """

    nodes: int
    feasible: int
    seconds: float
    unknown_nodes: int = 0
    nominated_nodes: int = 0
    plugins: list[PluginRecord] = []
    claimants: list[str] = []
    shards: int = 1
    version: str = ""
    cached_nodes: int = 0
    cached_from: str = ""


class ClaimRecord(Record):
    """The node that the pod has held since its cycle, and the plugins that wanted that.

    `outdated` means that the bind is checked, because something changed between the verdict and the
    claim, or not all filter plugins were asked. `annotations` are what the pod gets there, such as
    a device.
    """

    node: str
    plugins: list[str]
    outdated: bool = False
    annotations: dict[str, str] = {}


class GroupRecord(Record):
    """The trial placement of the pod's group, before the pod got a node.

    Attributes:
        plugin: The plugin that named the group.
        name: The group, mostly as NAMESPACE/NAME.
        members: How many of its pods exist; so many as `min_count` are to be on nodes together.
        on_nodes: How many were on nodes before; `fitting` is how many more found one.
        fits: Whether that was enough.
        ahead: Another group that comes before it and would need its room.
        topology_key: The label whose value all nodes must share, with the one that was tried best.
        failing: The first pod that found no node, and why.
        lacking: The resource that it lacked on most nodes; on how many there is enough of it, and
            which value of the topology label these share.
        like: An example of a type of node; as far as resources count, `more_nodes` further nodes
            of this type suffice.
        problem: Why no node was looked for.
        timeout: Seconds for which its pods hold the nodes that were found.
    """

    plugin: str
    name: str
    members: int
    min_count: int
    on_nodes: int = 0
    fitting: int = 0
    fits: bool = False
    ahead: str = ""
    topology_key: str = ""
    domain: str = ""
    failing: str = ""
    reasons: list[ReasonNodes] = []
    lacking: str = ""
    lacking_free: int = 0
    lacking_domain: str = ""
    like: str = ""
    more_nodes: int = 0
    problem: str = ""
    timeout: float = 0.0

    @property
    def waits(self) -> bool:
        """Whether it gets no nodes whoever is evicted: it is not complete, or not its turn."""
        return bool(self.problem or self.ahead)


class PluginScoreRecord(Record):
    """A plugin's opinion of a node: raw, normalised to 0..100, and its weight."""

    plugin: str
    raw: float
    normalized: float
    weight: int


class NodeScoreRecord(Record):
    """A node's total, 0..100, and what it is made of."""

    node: str
    total: float
    plugins: list[PluginScoreRecord] = []


class ScoreRecord(Record):
    """The score phase of a cycle: the best nodes, best first; the rest as in `FilterRecord`.

    `best` is how many nodes have the best total. `scale` is the whole number that was sent for a
    total of 100, 0 if none was sent. `tied` is how many nodes with a lower total than the best got
    the same whole number.
    """

    nodes: int
    seconds: float
    plugins: list[PluginRecord] = []
    top: list[NodeScoreRecord] = []
    shards: int = 1
    version: str = ""
    cached_nodes: int = 0
    cached_from: str = ""
    best: int = 0
    scale: int = 0
    tied: int = 0


class BindCheckRecord(Record):
    """Why the filter plugins were asked about the node again at the bind, and what came of it.

    `error` is empty if they let the pod pass.
    """

    node: str
    cause: Cause
    seconds: float
    error: str = ""


class BindPluginRecord(Record):
    """What a plugin did before the write, at Permit or PreBind.

    `result` is "ok", "wait", "refused" or "failed". `seconds` do not count the wait for others.
    """

    plugin: str
    point: str
    result: str
    seconds: float


class BindRecord(Record):
    """How the bind went; `error` is empty if it did."""

    node: str
    seconds: float
    error: str = ""
    plugins: list[BindPluginRecord] = []


class Decision(Record, kw_only=True):
    """One attempt to schedule a pod.

    Attributes:
        id: No other decision has it.
        attempt: How many attempts on the pod there have been, this one included.
        previous: The id of the pod's decision before, if it is kept.
        time: When the attempt began, in UTC.
        caller: Who asked: the address, and the names in the certificate.
        generation: The generation of the state that was used.
        epoch: That of the term in which the attempt began.
        snapshot_age_seconds: The time since the last message about nodes or about pods, whichever
            is longer. While nothing changes, the API server sends one about once a minute.
        cluster_nodes: The nodes that the cluster had; kube-scheduler offers a sample of them.
        queue_seconds: How long the attempt waited for its turn.
        seconds: How long its cycle took, from the call to the last score.
        score_error: Why there are no scores; kube-scheduler goes on without them.
        error: Why the attempt failed, as sent to kube-scheduler; empty if it did not.
        traceparent: W3C trace context of the span of its cycle; empty if it is not traced.
        outcome: What became of it; like the next two, worked out when somebody looks.
        reason: What decided, in a sentence.
        why: The same, and what else counted.
    """

    id: str = ""
    namespace: str
    pod: str
    uid: str
    attempt: int = 0
    previous: str = ""
    time: datetime
    profile: str
    policy_revision: str = ""
    caller: str = ""
    generation: int = 0
    epoch: int = 0
    snapshot_age_seconds: float = 0.0
    cluster_nodes: int = 0
    queue_seconds: float = 0.0
    seconds: float = 0.0
    filter: FilterRecord | None = None
    score: ScoreRecord | None = None
    score_error: str = ""
    claim: ClaimRecord | None = None
    group: GroupRecord | None = None
    preempt: FilterRecord | None = None
    bind_check: BindCheckRecord | None = None
    bind: BindRecord | None = None
    error: str = ""
    traceparent: str = ""
    outcome: Outcome | None = None
    reason: str = ""
    why: list[str] = []


class DecisionItem(Record, omit_defaults=False):
    """An attempt in lists and in the stream.

    Attributes:
        outcome: What became of it.
        node: The node that the pod went to, was to be bound to, or has claimed; "" for none.
        runner_up: The best other node; "" for none.
        reason: What decided, in a sentence.
        plugins: The plugins that decided.
        nodes: The nodes that kube-scheduler offered.
        feasible: Those that passed the filter.
        cluster_nodes, seconds, attempt, previous: As in `Decision`.
    """

    id: str
    namespace: str
    pod: str
    uid: str
    time: datetime
    profile: str
    outcome: Outcome
    node: str
    runner_up: str
    reason: str
    plugins: tuple[str, ...]
    nodes: int
    feasible: int
    cluster_nodes: int
    seconds: float
    attempt: int
    previous: str


class GroupItem(Record, omit_defaults=False):
    """A group as lists show it.

    Attributes:
        profile: The profile of its pods.
        group: How its latest trial placement ended.
        pod: The pod in whose cycle that was, as NAMESPACE/NAME.
        since: When the first trial was that is kept in mind, in UTC.
        time: When the latest was.
        bound: How many of the pods that nodes were found for are bound, as the watch shows.
        holding: How many hold a node without being bound.
        released: How often its time was over before enough of them were bound.
        pods: Some of these pods as NAMESPACE/NAME, each with its node or "".
        more: How many others there are.
    """

    profile: str
    group: GroupRecord
    pod: str
    since: datetime
    time: datetime
    bound: int = 0
    holding: int = 0
    released: int = 0
    pods: list[tuple[str, str]] = []
    more: int = 0
