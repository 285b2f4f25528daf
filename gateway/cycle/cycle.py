"""The cycle: one object that a call of kube-scheduler begins, and that everything else sees.

A cycle is filter and score of one pod, or one of both, or the filter of a preemption. Cycles run
one at a time, in the order in which the calls arrive. A cycle has its turn until its scores are in,
though the filter call is answered with its verdicts: the next cycle must see what this one claims,
and replicas are to be free for it. On the stream to a replica, what has changed in the cluster goes
before the cycle, so the plugins see the state that the cycle is decided by.

The edge makes it of the call. Only the methods here write it: whoever finds something out calls the
one of that name. Observers look at it at its end. It has the pod and the names of thousands of
nodes, so nobody keeps it for long. What is kept is its `decision`, in which nothing refers back.
"""

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from gateway.cycle.answers import PhaseScores, PhaseVerdicts, ties, whole
from gateway.cycle.decision import Decision
from gateway.cycle.nodes import NodeSet
from moorage.errors import MoorageError
from moorage.models import Pod
from moorage.plugin.normalization import MAX_SCORE

ANSWER_SECONDS = 0.02
"""Kept back of a call's deadline, so that it fails with a cause before the edge gives it up."""

Names = Sequence[str | None]
"""The node in each row, None where there is none; see `gateway.cluster.rows.Rows.names`."""


class CallFailedError(MoorageError):
    """A call cannot be answered.

    The message ends up in the pod's FailedScheduling event: short and always the same for the same
    cause, so no numbers, times or node names, or kube-scheduler retries the pod in a loop.
    """


class StandsByError(CallFailedError):
    """Another gateway decides: the caller reaches it by a new connection."""


NO_NODES = NodeSet(())


class Cycle(msgspec.Struct, kw_only=True, eq=False):
    """A cycle, from the call to the records.

    Attributes:
        pod: The pod, which has a name and a UID.
        pod_json: The pod's JSON, verbatim.
        nodes: The nodes that it is tried on.
        deadline: When the answer must be out, in seconds of `loop.time()`.
        plugin: The plugin named in the URL, or "" for the pod's whole profile.
        excluded_pods: UIDs of pods that count as gone.
        added_pods: Pods that count as on the nodes that they name; of very many, the first.
        caller: Who asks: the address, and the names in the certificate.
        profiles: The schedulerNames whose pods the caller may place; None for all.
        traceparent: W3C trace context of the span that it is in; "" if it is not traced.
        profile: The profile that the pod asks for, by its schedulerName.
        uid: The pod's UID.
        signature: What plugins read of the pod, the same for equal pods; empty until it is needed.
        decision: What is kept of it; None before it begins, and of pods of other profiles.
        exemplar_labels: The labels of examples in metrics: they lead to the decision and the trace.
        start: When it began, by `time.perf_counter()`.
        names: The nodes by row when it began; cycles share the object until a node comes or goes.
        names_after: The same at its end.
        verdicts: What filter plugins say; None if none was asked.
        feasible: The nodes that the pod may use, in the order of `nodes`: all of them, until filter
            plugins reject some.
        scores: What score plugins say of feasible nodes; None if none was asked, or none has an
            opinion.
        points: The totals as whole numbers, in the order of `feasible`, or of `nodes` if it only
            scores; empty without an opinion.
    """

    pod: Pod
    pod_json: bytes
    nodes: NodeSet
    deadline: float
    plugin: str = ""
    excluded_pods: Sequence[str] = ()
    added_pods: Sequence[Pod] = ()
    caller: str = ""
    profiles: frozenset[str] | None = None
    traceparent: str = ""
    profile: str = ""
    uid: str = ""
    signature: bytes = b""
    decision: Decision = None  # type: ignore[assignment]  # set when it begins
    exemplar_labels: Mapping[str, str] = {}
    start: float = 0.0
    names: Names = ()
    names_after: Names = ()
    verdicts: PhaseVerdicts | None = None
    feasible: NodeSet = NO_NODES
    scores: PhaseScores | None = None
    points: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.profile = self.pod.spec.scheduler_name
        self.uid = self.pod.metadata.uid
        self.feasible = self.nodes

    def begin(self, decision: Decision, names: Names) -> None:
        """Begin, or go on with, the attempt of a decision; *names* are the nodes by row now."""
        self.decision, self.names, self.start = decision, names, time.perf_counter()
        # An exemplar has at most 128 characters, and no name of a pod.
        self.exemplar_labels = {"decision": decision.id}
        if decision.traceparent:
            trace = decision.traceparent.split("-")[1]
            self.exemplar_labels = {**self.exemplar_labels, "trace_id": trace}

    def trace(self, traceparent: str) -> None:
        """Go on in a span; "" if it is not traced."""
        self.traceparent = traceparent

    def sign(self, signature: bytes) -> None:
        """Take over what plugins read of the pod."""
        self.signature = signature

    def judge(self, verdicts: PhaseVerdicts) -> None:
        """Take over verdicts, which leave the feasible nodes."""
        self.verdicts, nodes = verdicts, self.nodes
        is_any_rejected = verdicts.record.feasible < len(nodes.names)
        self.feasible = verdicts.feasible(nodes) if is_any_rejected else nodes

    def rank(self, scores: PhaseScores, scale: int = 0) -> None:
        """Take over scores; with a *scale* of answers, also the whole numbers that are sent."""
        record = self.decision.score = scores.record
        if not len(scores.totals):
            return
        self.scores = scores
        sent = whole(scores.totals, scale or MAX_SCORE)
        record.best, tied = ties(scores.totals, sent)
        if scale:
            record.scale, record.tied = scale, tied
            self.points = scores.rows.to_call_order(sent, 0).tolist()

    def claim(self, chosen: NodeSet) -> None:
        """Offer only the node that the pod claims."""
        self.feasible = chosen

    def end(self, names: Names) -> None:
        """End, or pause, when *names* are the nodes by row."""
        self.names_after = names
        self.decision.seconds += time.perf_counter() - self.start


Judge = Callable[[Cycle], Coroutine[Any, Any, PhaseVerdicts]]
"""Asks filter plugins about the nodes of a cycle; raises CallFailedError."""

Rank = Callable[[Cycle, NodeSet], Coroutine[Any, Any, PhaseScores]]
"""Asks score plugins about some nodes for a cycle; raises CallFailedError."""


class BindCall(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Put this pod on this node; `deadline`, `traceparent` and `profiles` as in `Cycle`."""

    namespace: str
    name: str
    uid: str
    node: str
    deadline: float
    traceparent: str = ""
    profiles: frozenset[str] | None = None


class Cycles(Protocol):
    """Answers calls. Any exception fails the call; users read only CallFailedError's message.

    Filter, prioritize and preempt are cancelled when the caller hangs up or the deadline passes;
    bind never is.
    """

    async def filter(self, cycle: Cycle) -> None:
        """Rule nodes out: `cycle.feasible` are left, `cycle.verdicts` say why not the others."""

    async def prioritize(self, cycle: Cycle) -> Sequence[int]:
        """Rank nodes.

        Returns:
            Whole numbers from 0 to the policy's `scoreScale`, aligned with the nodes of the cycle.
            Empty means no opinion.
        """

    async def preempt(self, cycle: Cycle) -> None:
        """Keep as `cycle.feasible` the nodes on which the pod could run without excluded pods."""

    async def bind(self, call: BindCall) -> None:
        """Bind the pod; returning means it is bound."""
