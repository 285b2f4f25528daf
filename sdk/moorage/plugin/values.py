"""The values that hooks take and return: what they answer, and the decision that binds are about.

The binder makes a `Binding` for each bind; its `DecisionSummary` comes from the gateway.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import msgspec

from moorage.models import Pod
from moorage.snapshot import Nodes

DEFAULT_TIME_BUDGET = 1.0
"""Seconds that a plugin may take at each extension point if neither it nor the policy sets them."""

MAX_TIME_BUDGET = 60.0
"""The longest time budget, in seconds."""

MAX_WEIGHT = 2**31 - 1
"""The largest weight of a score plugin."""


class Scope(IntEnum):
    """What a plugin's verdict or raw score of a node depends on. The wider scope is the larger.

    All of them but `ANYTHING` allow the plugin's arguments and the pod's signature: its namespace,
    labels, annotations, owner references and spec, or those of them that `pod_fields` names. None
    of them allows a dependence on which nodes a call happens to be about, see `Nodes.cluster`.

    Replicas cache verdicts and scores by this declaration. A scope that is too narrow makes them
    use outdated ones, and so misplaces pods; one that is too wide only costs calls.
    """

    NODE = 1
    """On that node with the pods on it."""

    MANIFESTS = 2
    """Also on which nodes exist, on the manifests of all nodes, and on the objects that the plugin
    names in `reads`; not on the pods on other nodes."""

    CLUSTER = 3
    """On anything in the snapshot: all nodes, all pods on them, the objects of `reads`."""

    ANYTHING = 4
    """Also on what is outside of the snapshot, such as a clock, a file, random numbers, Prometheus,
    earlier cycles, or the pod's name, uid or status. Never cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What `prepare` may return.

    Attributes:
        nodes: Go on with these nodes only; the others are rejected. None keeps all. Only filter
            plugins may narrow the nodes.
        skip: The plugin has no verdicts on, or scores for, this pod.
    """

    nodes: Nodes | None = None
    skip: bool = False


SKIP = Preparation(skip=True)
"""What `prepare` returns for pods that do not concern the plugin: it is asked about no node."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod may not be bound now; kube-scheduler tries it again later.

    Keep `reason` constant: users read it in the pod's event, which is counted by its text.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Allow:
    """The bind may go on."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The bind waits until others with the same `permit_key` come, and is asked again then.

    Attributes:
        seconds: How long it waits at most, from when it came. The bind's deadline may be earlier.
        awaited: What it waits for, as users read it after "waited 3.2 s for" when time runs out.
    """

    seconds: float
    awaited: str = "others with the same key"


Permission = Allow | Wait | Refusal
"""The answers of `permit`."""


class _Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a decision in short."""


class ScoredNode(_Summary, frozen=True, kw_only=True):
    """A node with its total, 0 to 100, and the score of each plugin, 0 to 100.

    The plugins that counted most, by their weights, come first.
    """

    node: str
    score: float | None = None
    plugins: dict[str, float] = {}


class DecisionSummary(_Summary, frozen=True, kw_only=True):
    """Why a pod goes to its node, in short.

    Attributes:
        winner: The node that the pod goes to; without a score if nobody scored it.
        runner_up: The best other node; None if no other was scored.
        reason: What decided, in a sentence.
        nodes: How many nodes were looked at.
        feasible: How many of them could run the pod.
        policy_revision: The revision of the policy that was active.
        generation: The generation of the state that was used.
    """

    winner: ScoredNode
    runner_up: ScoredNode | None = None
    reason: str = ""
    nodes: int = 0
    feasible: int = 0
    policy_revision: str = ""
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A decision to write.

    Attributes:
        namespace: The pod's namespace.
        name: The pod's name.
        uid: The pod's uid.
        node: The name of the node.
        profile: The pod's schedulerName.
        annotations: What the pod gets in the same write; `annotate` adds to it.
        decision: Why this node; None if the gateway has it no longer.
        cycle_state: By key, what filter and score plugins kept for this bind, see
            `Plugin.cycle_state`: the values for this node, and those for all. Without the pod's
            latest cycle, as after a restart of the gateway, it is empty.
        arrived: In `permit`, the binds with the same `permit_key` that have come so far and have
            not gone on yet, this one among them, in order of arrival; otherwise empty.
        generation: The plugins see the state of this generation, or a later one; 0 for none.
        holder: The gateway whose state that is; empty for any.
        traceparent: W3C trace context of the bind, for spans of plugins; empty if it is not traced.
        known_pod: The pod as it was read; plugins use `pod`.
        known_nodes: Returns the nodes of the snapshot now; plugins use `nodes`.
    """

    namespace: str
    name: str
    uid: str
    node: str
    profile: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    decision: DecisionSummary | None = None
    cycle_state: Mapping[str, Any] = field(default_factory=dict)
    arrived: tuple["Binding", ...] = ()
    generation: int = 0
    holder: str = ""
    traceparent: str = ""
    known_pod: Pod | None = None
    known_nodes: Callable[[], Nodes] | None = None

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.name}"

    @property
    def pod(self) -> Pod:
        """The pod, as it was just before the first plugin.

        Raises:
            LookupError: No plugin of the profile reads pods, so that it was not read.
        """
        if self.known_pod is None:
            raise LookupError("the pod was not read: leave `reads_pod` of the plugin at True")
        return self.known_pod

    @property
    def nodes(self) -> Nodes:
        """All nodes with their pods and objects, as they are now; `get` returns one by its name.

        At least as new as the pod's cycle. It may change whenever the plugin awaits.

        Raises:
            LookupError: No plugin of the profile reads the snapshot, so that it was not sent.
        """
        if self.known_nodes is None:
            raise LookupError("the snapshot was not sent: the plugin needs `reads_snapshot = True`")
        return self.known_nodes()

    def annotate(self, key: str, value: str) -> None:
        """Give the pod an annotation in the same write that binds it.

        Raises:
            TypeError: The key or the value is not text.
        """
        if not (isinstance(key, str) and isinstance(value, str)):
            raise TypeError(
                f"an annotation is text: got {type(key).__name__}, {type(value).__name__}"
            )
        self.annotations[key] = value
