"""Which gateway may bind: the highest epoch, and the binds that it overtakes.

A gateway that took over must know that nothing is written any more of what the one before it
decided. Called by `binder`. A bind of a lower epoch is given up unless its POST has been sent: then
the outcome is awaited. A bind without an epoch, as by hand, is never fenced.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import structlog

from moorage import Binding
from services.binder.binding.outcomes import BindError, Reason
from services.binder.binding.written import Written, WrittenBinds, written

Stage = Literal["arrival", "waiting"]

Result = TypeVar("Result")

_log = structlog.get_logger()


class FenceObserver(Protocol):
    """Counts what epochs do."""

    def epoch_raised(self, epoch: int, /) -> None:
        """Note that there is a new highest epoch."""

    def fenced(self, stage: Stage, /) -> None:
        """Note that a bind was refused on arrival, or given up while it waited."""

    def barrier(self, seconds: float, /, *, is_held: bool) -> None:
        """Note that a barrier was answered, and whether its caller holds the highest epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """The answer to a barrier.

    Attributes:
        epoch: The highest epoch.
        holder: Whose it is; empty if a bind brought it.
        binds: What was written, or may have been, newest last; empty if the caller does not hold
            the highest epoch.
        memory: For how many seconds back `binds` is complete.
    """

    epoch: int
    holder: str
    binds: list[Written]
    memory: float


class Fence:
    """The highest epoch that this binder has seen.

    Args:
        past: The binds that were written.
        observer: Who counts.

    Attributes:
        epoch: It, or 0.
        holder: Whose it is; empty if a bind brought it, which names no holder.
    """

    def __init__(self, past: WrittenBinds, observer: FenceObserver) -> None:
        self.epoch = 0
        self.holder = ""
        self._past = past
        self._observer = observer
        self._guards: set[Guard] = set()

    def admit(self, binding: Binding, epoch: int) -> None:
        """Take a bind in, whose epoch may be higher than any before.

        Raises:
            BindError: Its epoch is lower.
        """
        if 0 < epoch < self.epoch:
            self._observer.fenced("arrival")
            _log.warning(
                "A bind of an earlier epoch was refused",
                pod_uid=binding.uid,
                epoch=epoch,
                highest=self.epoch,
                holder=self.holder,
            )
            raise self._stale(binding, epoch)
        if epoch > self.epoch:
            self._raise(epoch, "")

    def guard(self, binding: Binding, epoch: int) -> "Guard":
        """Return what watches over one bind, until it is released."""
        guard = Guard(binding, epoch)
        self._guards.add(guard)
        return guard

    def release(self, guard: "Guard") -> None:
        """Forget a bind that has ended."""
        self._guards.discard(guard)
        guard.ended.set()
        if guard.is_given_up:
            self._observer.fenced("waiting")

    async def barrier(self, epoch: int, holder: str) -> Fenced:
        """Fence all lower epochs; return what was written once no bind of theirs is under way.

        A holder may repeat it. A caller who does not hold the highest epoch, or loses it meanwhile,
        learns who does. An epoch that a bind brought is nobody's whom one could compare with.
        """
        started = time.monotonic()
        if epoch > self.epoch:
            self._raise(epoch, holder)
        if self._is_held(epoch, holder):
            await self._settle(epoch)
        is_held = self._is_held(epoch, holder)
        binds, memory = self._recall() if is_held else ([], 0.0)
        seconds = time.monotonic() - started
        self._observer.barrier(seconds, is_held=is_held)
        _log.info(
            "A barrier was passed" if is_held else "A barrier was refused: see highest",
            epoch=epoch,
            holder=holder,
            highest=self.epoch,
            highest_holder=self.holder,
            binds=len(binds),
            seconds=round(seconds, 3),
        )
        return Fenced(epoch=self.epoch, holder=self.holder, binds=binds, memory=memory)

    def _is_held(self, epoch: int, holder: str) -> bool:
        return (epoch, holder) == (self.epoch, self.holder)

    async def _settle(self, epoch: int) -> None:
        """Wait until the outcomes of writes of lower epochs are known, or their time is over."""
        for guard in [each for each in self._guards if 0 < each.epoch < epoch]:
            if guard.has_written:
                await guard.ended.wait()

    def _recall(self) -> tuple[list[Written], float]:
        """Return what was written, with what is being written last, and how far back that goes."""
        binds, memory = self._past.recall()
        known = {(bind.uid, bind.node) for bind in binds}
        writing = (guard.binding for guard in self._guards if guard.has_written)
        unknown = [each for each in writing if (each.uid, each.node) not in known]
        return [*binds, *(written(each, unknown=True) for each in unknown)], memory

    def _raise(self, epoch: int, holder: str) -> None:
        self.epoch, self.holder = epoch, holder
        self._observer.epoch_raised(epoch)
        stale = [guard for guard in self._guards if 0 < guard.epoch < epoch]
        _log.info(
            "Binds of earlier epochs are refused from here on",
            epoch=epoch,
            holder=holder or "unknown: a bind brought it",
            given_up=sum(not guard.has_written for guard in stale),
            under_way=sum(guard.has_written for guard in stale),
        )
        for guard in stale:
            guard.overtake(self._stale(guard.binding, guard.epoch))

    def _stale(self, binding: Binding, epoch: int) -> BindError:
        holder = f" of {self.holder}" if self.holder else ""
        return BindError(
            Reason.STALE_EPOCH,
            f"{binding} was not bound: it was decided in epoch {epoch}, and epoch {self.epoch}"
            f"{holder} has begun; another gateway has taken over, or this one has begun again",
        )


class Guard:
    """Keeps one bind from being written once a higher epoch was seen.

    Attributes:
        binding: The bind.
        epoch: Its own; 0 if it has none, and is never overtaken.
        has_written: A POST was sent; from here on the bind is not interrupted.
        is_given_up: It ended because it was overtaken.
        ended: Set when nothing more is done for the bind.
    """

    def __init__(self, binding: Binding, epoch: int = 0) -> None:
        self.binding = binding
        self.epoch = epoch
        self.has_written = False
        self.is_given_up = False
        self.ended = asyncio.Event()
        self._overtaken = asyncio.Event()
        self._refusal: BindError | None = None
        self._scope: asyncio.Timeout | None = None

    @property
    def is_stale(self) -> bool:
        """Whether there is a higher epoch."""
        return self._refusal is not None

    async def run(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Return what *work* returns; interrupt it when overtaken, unless it has written.

        Raises:
            BindError: It was overtaken.
        """
        try:
            async with asyncio.timeout(None) as self._scope:
                if self.is_stale:
                    raise self.given_up()
                return await work()
        except TimeoutError as error:
            if self._scope and self._scope.expired():
                raise self.given_up() from error
            raise
        finally:
            self._scope = None

    def overtake(self, refusal: BindError) -> None:
        """End what waits: it is refused."""
        self._refusal = refusal
        self._overtaken.set()
        if self._scope and not self.has_written:
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until overtaken."""
        if self.is_stale:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._overtaken.wait()

    def given_up(self) -> BindError:
        """Return the end of a bind that was overtaken, to be raised."""
        assert self._refusal is not None  # noqa: S101 - it was overtaken
        self.is_given_up = True
        return self._refusal
