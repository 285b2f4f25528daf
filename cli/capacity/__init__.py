"""The command `moorage capacity`: it asks an autoscaler for nodes that cure a rule's rejections."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """How much may be asked for.

    Attributes:
        most: Requests that may be open, and `most_per_namespace` of one namespace.
        pause: Seconds after which a namespace may ask again that got a node in vain, or was
            refused.
        timeout: Seconds after which a request that brings no node is taken back.
    """

    most: int = 100
    most_per_namespace: int = 20
    pause: float = 30.0
    timeout: float = 900.0


DEFAULT_LIMITS: Final = RequestLimits()
