"""How a bind ends, and the reasons why it may not. What a bind is, is `moorage.Binding`."""

from enum import Enum
from typing import Literal

import msgspec

from moorage import Binding
from moorage.errors import MoorageError
from moorage.models import Pod

Point = Literal["Permit", "PreBind", "PostBind"]
Result = Literal["ok", "wait", "refused", "failed"]
Stage = Literal["arrival", "waiting"]
WaitEnd = Literal["allowed", "refused", "failed", "timeout", "ended", "fenced"]


class BindPluginRun(msgspec.Struct, frozen=True):
    """What a plugin answered last at an extension point, and how long it took in all."""

    plugin: str
    point: Point
    result: Result
    seconds: float


class BindResult(Enum):
    """How a pod came to be bound to the node."""

    BOUND = "bound"
    ALREADY_BOUND = "already-bound"


class BindReason(Enum):
    """Why a pod was not bound, or is not known to be."""

    INVALID = "invalid"
    NOT_FOUND = "not-found"
    OTHER_UID = "other-uid"
    TERMINATING = "terminating"
    GATED = "gated"
    BOUND_ELSEWHERE = "bound-elsewhere"
    REFUSED = "refused"
    PERMIT_TIMEOUT = "permit-timeout"
    GROUP = "group"
    PLUGIN_FAILED = "plugin-failed"
    POLICY = "policy"
    STALE_EPOCH = "stale-epoch"
    FORBIDDEN = "forbidden"
    OVERLOADED = "overloaded"
    UNAVAILABLE = "unavailable"
    DEADLINE = "deadline"


class BindError(MoorageError):
    """A bind did not succeed, as far as is known; the message names the pod and what to do."""

    def __init__(self, reason: BindReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def is_bound_as_decided(pod: Pod, binding: Binding) -> bool:
    """Return whether the pod is bound as decided.

    Raises:
        BindError: It is not and never will be.
    """
    if pod.uid != binding.uid:
        raise BindError(
            BindReason.OTHER_UID, f"{binding} has uid {pod.uid}, not {binding.uid}: it was replaced"
        )
    if pod.spec.node_name == binding.node:
        return True
    if pod.spec.node_name:
        raise BindError(
            BindReason.BOUND_ELSEWHERE,
            f"{binding} is bound to node {pod.spec.node_name}, not {binding.node}",
        )
    if pod.metadata.deletion_timestamp:
        raise BindError(BindReason.TERMINATING, f"{binding} is being deleted")
    if gates := ", ".join(gate.name for gate in pod.spec.scheduling_gates):
        raise BindError(BindReason.GATED, f"{binding} has scheduling gates: {gates}")
    return False
