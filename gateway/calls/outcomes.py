"""The calls other than filter and prioritize, the outcomes of all calls, and who answers them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from gateway.calls.node_set import NodeSet
from gateway.calls.request import CycleRequest
from moorage.errors import MoorageError
from moorage.models import Pod

ANSWER_SECONDS = 0.02
"""Kept back of a call's deadline, so that it fails with a cause before the edge gives it up."""


class FilterOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Which nodes the pod may use.

    Attributes:
        feasible: A subset of the nodes of the request, in its order.
        failed: Reason by node for rejections that evicting pods might cure.
        unresolvable: Reason by node for all other rejections.
        scores: Becomes what a prioritize call for `feasible` will get; None if nobody is
            working on it yet.
    """

    feasible: NodeSet
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    scores: "asyncio.Future[PrioritizeOutcome] | None" = None


class PrioritizeOutcome(msgspec.Struct, kw_only=True, eq=False):
    """How good the nodes are.

    Attributes:
        scores: Whole numbers from 0 to the policy's `scoreScale`, aligned with the nodes of the
            request. Empty means no opinion.
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
    """Candidate nodes and what would be evicted there; the rest as in `CycleRequest`."""

    pod: Pod
    pod_json: bytes
    victims: Mapping[str, Victims]
    deadline: float
    traceparent: str = ""
    caller: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptOutcome:
    """The candidates that remain, with the victims that the call gave them."""

    victims: Mapping[str, Victims]


@dataclass(frozen=True, slots=True, kw_only=True)
class BindCall:
    """Put this pod on this node; `deadline` and `traceparent` as in `CycleRequest`."""

    namespace: str
    name: str
    uid: str
    node: str
    deadline: float
    traceparent: str = ""


class CallFailedError(MoorageError):
    """A call cannot be answered.

    The message ends up in the pod's FailedScheduling event: short and always the same for the same
    cause, so no numbers, times or node names, or kube-scheduler retries the pod in a loop.
    """


class StandsByError(CallFailedError):
    """Another gateway decides: the caller reaches it by a new connection."""


class Cycles(Protocol):
    """Answers calls. Any exception fails the call; users read only CallFailedError's message.

    Filter, prioritize and preempt are cancelled when the caller hangs up or the deadline passes;
    bind never is.
    """

    async def filter(self, request: CycleRequest) -> FilterOutcome:
        """Rule nodes out."""

    async def prioritize(self, request: CycleRequest) -> PrioritizeOutcome:
        """Rank nodes."""

    async def preempt(self, call: PreemptCall) -> PreemptOutcome:
        """Drop the candidates on which the pod could not run even without the victims."""

    async def bind(self, call: BindCall) -> None:
        """Bind the pod; returning means it is bound."""
