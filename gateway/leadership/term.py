"""The term: the time in which this process may decide, and the epoch that all its binds carry.

Two gateways must never decide at a time, though processes stop, clocks differ and messages are
late. Four things see to that.

- The *Lease* in the API server names one holder at a time (`gateway.leadership.election`). Without
  an election, as beside each kube-scheduler, every gateway may decide, and the last one called
  does.
- Each term has an *epoch* that is higher than any before; each bind carries it, and a binder
  refuses binds of a lower epoch than it has seen.
- A *barrier* begins an epoch at every binder (`gateway.leadership.barriers`). It is answered when
  nothing of lower epochs is written any more, with the binds of the last minutes. The gateway
  counts those of them that its watch has not shown yet, so it begins with all that was decided
  before.
- The *term* of this process is valid until the Lease would run out, counted from when its renewal
  was sent, on this process's monotonic clock. A binder ends it as well, by refusing its epoch.

Each call enters the term first, and waits for one that is about to begin.
"""

import asyncio
import math
import time

import structlog

from gateway.cycle import ANSWER_SECONDS, CallFailedError, StandsByError

NOT_YET = "this gateway of Moorage has just started or taken over; see its /readyz"

STANDS_BY = "this gateway of Moorage stands by: another one decides; see its /readyz"

_log = structlog.get_logger()


class StaleTermError(CallFailedError):
    """A bind was not sent, or was refused, since its term is over."""


class Term:
    """The current term, or the absence of one.

    Attributes:
        epoch: Of the newest term; 0 before the first.
        problem: Why nothing is decided; empty during a term.
        stands_by: Whether calls fail at once instead of waiting for a term.
        wanted: Set when a call waits for a term.
        ended: Set while there is no term.
    """

    def __init__(self) -> None:
        """Begin without a term."""
        self.epoch = 0
        self.problem = "no term has begun yet"
        self.stands_by = False
        self.wanted = asyncio.Event()
        self.ended = asyncio.Event()
        self.ended.set()
        self._begun = asyncio.Event()
        self._valid_until = -math.inf

    @property
    def is_active(self) -> bool:
        """Whether calls may be answered; false from the instant at which the term runs out."""
        return time.monotonic() < self._valid_until

    def require(self, epoch: int) -> None:
        """Raise StaleTermError if a bind of *epoch* may not be sent any more."""
        if epoch != self.epoch or time.monotonic() >= self._valid_until:
            raise StaleTermError("the bind was not sent, since another gateway has taken over")

    def begin(self, epoch: int, *, valid_until: float = math.inf) -> None:
        """Begin a term that ends on the clock at *valid_until* unless it is extended."""
        self.epoch, self.problem, self.stands_by = epoch, "", False
        self._valid_until = valid_until
        self.wanted.clear()
        self.ended.clear()
        self._begun.set()
        _log.info("A term has begun", epoch=epoch)

    def extend(self, valid_until: float) -> None:
        """Let the term end later than it would."""
        if not self.ended.is_set():
            self._valid_until = valid_until

    def end(self, epoch: int, problem: str) -> None:
        """End the term of *epoch*, if that has not ended yet."""
        if self.ended.is_set() or epoch != self.epoch:
            return
        _log.warning("The term has ended", epoch=epoch, problem=problem)
        self.problem = problem
        self._begun.clear()
        self.ended.set()
        self._valid_until = -math.inf

    def expect(self) -> None:
        """Let calls come, and wait: the gateway that decides is about to hand over."""
        self.problem, self.stands_by = "", False

    def await_beginning(self, problem: str) -> None:
        """Let calls wait from here on: a term is about to begin."""
        self.problem, self.stands_by = problem, False

    def stand_by(self, problem: str) -> None:
        """Let calls fail at once from here on: another process decides."""
        self.end(self.epoch, problem)
        self.problem, self.stands_by = problem, True
        self._begun.set()  # wakes the calls that wait
        self._begun.clear()

    async def enter(self, deadline: float) -> int:
        """Return the epoch of the term, once there is one.

        Raises:
            CallFailedError: There is none, or none in time.
        """
        while time.monotonic() >= self._valid_until:
            if self.stands_by or not self.ended.is_set():
                raise StandsByError(STANDS_BY)
            self.wanted.set()
            try:
                async with asyncio.timeout_at(deadline - ANSWER_SECONDS):
                    await self._begun.wait()
            except TimeoutError as error:
                raise CallFailedError(NOT_YET) from error
        return self.epoch
