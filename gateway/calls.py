"""What kube-scheduler asks and what it gets, without HTTP: the seam between edge and cycles.

`gateway.edge` decodes requests into these calls and encodes the outcomes; `gateway.cycle.runner`
answers them. Neither knows the other.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from moorage.errors import MoorageError
from moorage.models import NodeManifest, Pod

ANSWER_SECONDS = 0.02
"""Kept back of a call's deadline, so that it fails with a cause before the edge gives it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenNode:
    """A node sent along with the call; `raw` is its JSON, a view into the request body."""

    manifest: NodeManifest
    raw: msgspec.Raw


class SchedulingCall(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A filter or prioritize call.

    Attributes:
        pod: The pod, which has a name and a UID.
        pod_json: The pod's JSON, verbatim.
        node_names: In the order of the request.
        nodes: Aligned with `node_names` when the call brought whole nodes, else None.
        plugin: The plugin named in the URL, or "" for the pod's whole profile.
        deadline: When the answer must be out, in seconds of `loop.time()`.
    """

    pod: Pod
    pod_json: bytes
    node_names: Sequence[str]
    nodes: Sequence[GivenNode] | None
    plugin: str
    deadline: float


class FilterOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes the pod may use.

    Every name comes from the call. Pass `call.node_names` itself as `feasible` when nothing was
    ruled out: the edge then echoes the request's bytes.

    Attributes:
        feasible: In the order of the call.
        failed: Reason by node for rejections that evicting pods might cure.
        unresolvable: Reason by node for all other rejections.
        ahead: Becomes the very scores that a prioritize call for `feasible` will get; None if
            nobody works on them yet.
    """

    feasible: Sequence[str]
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    ahead: "asyncio.Future[Sequence[int]] | None" = None


class PrioritizeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How good the nodes are: `scores` is aligned with `call.node_names`; empty means no opinion.

    Scores are whole numbers from 0 to 100; 10 is what kube-scheduler takes for the best.
    """

    scores: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """The pods to evict from one node, highest priority first; `pods` if the call had them."""

    uids: Sequence[str]
    num_pdb_violations: int = 0
    pods: Sequence[Pod] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptCall:
    """Candidate nodes and what would be evicted there; `deadline` as in `SchedulingCall`."""

    pod: Pod
    pod_json: bytes
    victims: Mapping[str, Victims]
    deadline: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptOutcome:
    """The candidates that remain, with the victims that the call gave them."""

    victims: Mapping[str, Victims]


@dataclass(frozen=True, slots=True, kw_only=True)
class BindCall:
    """Put this pod on this node; `deadline` as in `SchedulingCall`."""

    namespace: str
    name: str
    uid: str
    node: str
    deadline: float


class CallFailedError(MoorageError):
    """A call cannot be answered.

    The message ends up in the pod's FailedScheduling event: short and always the same for the same
    cause, so no numbers, times or node names, or kube-scheduler retries the pod in a loop.
    """


class Cycles(Protocol):
    """Answers calls. Whatever is raised fails the call; users read only CallFailedError's message.

    Filter, prioritize and preempt are cancelled when the caller hangs up or the deadline passes;
    bind never is.
    """

    async def filter(self, call: SchedulingCall) -> FilterOutcome:
        """Rule nodes out."""

    async def prioritize(self, call: SchedulingCall) -> PrioritizeOutcome:
        """Rank nodes."""

    async def preempt(self, call: PreemptCall) -> PreemptOutcome:
        """Drop the candidates on which the pod could not run even without the victims."""

    async def bind(self, call: BindCall) -> None:
        """Bind the pod; returning means it is bound."""
