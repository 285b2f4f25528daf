"""What bind plugins answer."""

from dataclasses import dataclass


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
