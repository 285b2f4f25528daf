"""What a bind is, how it ends, and the reasons why it may not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from moorage.errors import MoorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A decision to write."""

    namespace: str
    name: str
    uid: str
    node: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    profile: str = ""

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.name}"


class Outcome(Enum):
    """How a pod came to be bound to the node."""

    BOUND = "bound"
    ALREADY_BOUND = "already-bound"


class Reason(Enum):
    """Why a pod was not bound, or is not known to be."""

    INVALID = "invalid"
    NOT_FOUND = "not-found"
    OTHER_UID = "other-uid"
    TERMINATING = "terminating"
    GATED = "gated"
    BOUND_ELSEWHERE = "bound-elsewhere"
    FORBIDDEN = "forbidden"
    OVERLOADED = "overloaded"
    UNAVAILABLE = "unavailable"
    DEADLINE = "deadline"


class BindError(MoorageError):
    """A bind did not succeed, as far as is known; the message names the pod and what to do."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
