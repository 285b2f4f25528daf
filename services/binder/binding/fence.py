"""Which gateway may bind: the highest epoch, and the binds that it overtakes.

Each gateway has its binds carry the epoch of its term. One that takes over must know that nothing
is written any more of what the one before it decided. So a bind of a lower epoch than the binder
has seen is refused, one under way is given up unless its POST has been sent, and a barrier, which
begins an epoch, is answered when the outcomes of those that were sent are known, or their time is
over. A bind without an epoch, as by hand, is never fenced.
"""

import asyncio
import time
from collections.abc import Set

import msgspec
import structlog

from moorage import Binding
from services.binder.binding.attempt import BindAttempt
from services.binder.binding.ledger import BindHistory, RecordedBind, recorded
from services.binder.binding.outcomes import BindError, BindReason
from services.binder.metrics import BindMetrics

_log = structlog.get_logger()


class BarrierResult(msgspec.Struct, frozen=True, kw_only=True):
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
    binds: list[RecordedBind]
    memory: float


class Fence:
    """The highest epoch that this binder has seen.

    Args:
        attempts: The binds under way.
        history: The binds that were written.
        metrics: What counts.

    Attributes:
        epoch: The highest, or 0.
        holder: Whose it is; empty if a bind brought it, which names no holder.
    """

    def __init__(
        self, attempts: Set[BindAttempt], history: BindHistory, metrics: BindMetrics
    ) -> None:
        self.epoch = 0
        self.holder = ""
        self._attempts = attempts
        self._history = history
        self._metrics = metrics

    def admit(self, binding: Binding, epoch: int) -> None:
        """Take a bind in, whose epoch may be higher than any before.

        Raises:
            BindError: Its epoch is lower.
        """
        if 0 < epoch < self.epoch:
            self._metrics.fenced("arrival")
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

    async def barrier(self, epoch: int, holder: str) -> BarrierResult:
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
        self._metrics.barrier(seconds, is_held=is_held)
        _log.info(
            "A barrier was passed" if is_held else "A barrier was refused: see highest",
            epoch=epoch,
            holder=holder,
            highest=self.epoch,
            highest_holder=self.holder,
            binds=len(binds),
            seconds=round(seconds, 3),
        )
        return BarrierResult(epoch=self.epoch, holder=self.holder, binds=binds, memory=memory)

    def _is_held(self, epoch: int, holder: str) -> bool:
        return (epoch, holder) == (self.epoch, self.holder)

    async def _settle(self, epoch: int) -> None:
        """Wait until the outcomes of writes of lower epochs are known, or their time is over."""
        sent = [a.task for a in self._attempts if a.has_written and 0 < a.epoch < epoch]
        if sent:
            await asyncio.wait(sent)

    def _recall(self) -> tuple[list[RecordedBind], float]:
        """Return what was written, with what is being written last, and how far back that goes."""
        binds, memory = self._history.recall()
        known = {(bind.uid, bind.node) for bind in binds}
        for attempt in self._attempts:
            each = attempt.binding
            if attempt.has_written and (each.uid, each.node) not in known:
                binds.append(recorded(each, each.node, unknown=True))
        return binds, memory

    def _raise(self, epoch: int, holder: str) -> None:
        self.epoch, self.holder = epoch, holder
        self._metrics.epoch_raised(epoch)
        stale = [attempt for attempt in self._attempts if 0 < attempt.epoch < epoch]
        _log.info(
            "Binds of earlier epochs are refused from here on",
            epoch=epoch,
            holder=holder or "unknown: a bind brought it",
            given_up=sum(not attempt.has_written for attempt in stale),
            under_way=sum(attempt.has_written for attempt in stale),
        )
        for attempt in stale:
            attempt.overtake(self._stale(attempt.binding, attempt.epoch))

    def _stale(self, binding: Binding, epoch: int) -> BindError:
        holder = f" of {self.holder}" if self.holder else ""
        return BindError(
            BindReason.STALE_EPOCH,
            f"{binding} was not bound: it was decided in epoch {epoch}, and epoch {self.epoch}"
            f"{holder} has begun; another gateway has taken over, or this one has begun again",
        )
