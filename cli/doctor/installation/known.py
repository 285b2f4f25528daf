"""What could be read of an installation, and why something could not."""

from dataclasses import dataclass
from typing import TypeVar

from moorage.errors import MoorageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Missing:
    """Stands for what could not be read.

    Attributes:
        reason: Why, as a part of a sentence.
        is_absent: Whether it could be read that there is no such object.
    """

    reason: str
    is_absent: bool = False


class NotReadError(MoorageError):
    """A check needs what could not be read; the runner reports it as not checked."""


def known(value: T | Missing) -> T:
    """Return what was read.

    Raises:
        NotReadError: It could not be read.
    """
    if isinstance(value, Missing):
        raise NotReadError(value.reason)
    return value
