"""What a target is."""

from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from random import Random
from typing import Any, ClassVar

LOG_BYTES = 1024
"""What one bad call may write to the log."""


class WrongError(Exception):
    """Something that must always hold does not.

    Args:
        what: One line, the same for all cases of this kind.
        detail: What helps to mend it.
    """

    def __init__(self, what: str, detail: object = "") -> None:
        super().__init__(f"{what}: {detail}")
        self.what = what
        self.detail = str(detail)[:2000]


class Target(ABC):
    """Something that reads what others send.

    Attributes:
        name: What it is called on the command line, and its folder of the corpus.
        share: Its part of all cases, compared to the other targets.
        seconds: How long a case takes, roughly: slow targets start first.
        packages: Whose branches guide the search.
        tokens: Words that mutations put in.
        longest: Bytes of a case.
        log_bytes: What a case may write to the log.
    """

    name: ClassVar[str]
    share: ClassVar[float]
    seconds: ClassVar[float] = 1e-4
    packages: ClassVar[tuple[str, ...]] = ()
    tokens: ClassVar[tuple[str, ...]] = ()
    longest: ClassVar[int] = 256
    log_bytes: ClassVar[int] = LOG_BYTES

    async def open(self, stack: AsyncExitStack) -> None:
        """Start what the cases need; by default nothing."""
        del stack

    @abstractmethod
    async def case(self, data: bytes) -> None:
        """Run one case; raises WrongError, or whatever else is not expected."""

    @property
    def has_structure(self) -> bool:
        """Whether it has mutations of its own."""
        return type(self).mutated is not Target.mutated

    def mutated(self, data: bytes, random: Random) -> bytes | None:
        """Return a case that differs in its structure; None leaves it to mutations of bytes."""
        del data, random
        return None


def require(condition: Any, what: str, detail: object = "") -> None:
    """Raise WrongError unless something holds."""
    if not condition:
        raise WrongError(what, detail)
