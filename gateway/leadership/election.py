"""The election: of several gateways, the one that holds the Lease begins terms.

As client-go does it: the Lease ends when it was not seen to change for its duration, on this
process's monotonic clock. Its holder stops deciding before that, after the renew deadline, counted
from when it sent the last successful renewal. So clocks need not agree, only run equally fast.
"""

import asyncio
import math
import random
import time
from dataclasses import dataclass

import structlog

from gateway.leadership.lease import LONGEST_SECONDS, Lease, LeaseStore, LeaseTakenError
from gateway.leadership.term import Term
from gateway.leadership.terms import Terms
from moorage_host.kube import KubeError

LOOKS = 4
"""How often a gateway that stands by looks at the Lease in a retry period: it is to notice at once
that the Lease was released."""

RELEASED_SECONDS = 1.0

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long what takes, in seconds.

    Attributes:
        lease: Silence of the holder after which another one takes the Lease.
        renew: Time after the last renewal at which the holder stops deciding; shorter.
        retry: Between renewals.
    """

    lease: float
    renew: float
    retry: float


class LeaseLostError(Exception):
    """This process holds the Lease no more; the message says why."""


class Election:
    """Takes the Lease, keeps it, and releases it in the end."""

    def __init__(
        self, store: LeaseStore, term: Term, terms: Terms, holder: str, durations: Durations
    ) -> None:
        self._store = store
        self._term = term
        self._terms = terms
        self._holder = holder
        self._durations = durations
        self._lease = Lease()
        self._seen_at = -math.inf
        self._valid_until = -math.inf
        self._writing = asyncio.Lock()
        self._leaving = False

    async def run(self) -> None:
        """Take part until cancelled; then release the Lease."""
        self._term.stand_by("the Lease has not been read yet")
        try:
            while True:
                await self._acquire()
                _log.info("The Lease was taken", lease=self._store.name, epoch=self._lease.epoch)
                problem = await self._lead()
                _log.warning("The Lease was lost", lease=self._store.name, problem=problem)
                self._term.stand_by(problem)
        finally:
            await self.release()

    async def _acquire(self) -> None:
        """Return once this process has the Lease."""
        while True:
            try:
                await self._look()
                if await self._take():
                    return
            except (KubeError, TimeoutError) as error:
                self._term.stand_by(f"the Lease {self._store.name} cannot be read: {error}")
            await asyncio.sleep(self._jittered(self._durations.retry / LOOKS))

    async def _look(self) -> None:
        lease = await self._store.read(self._timeout)
        if lease.version != self._lease.version:
            self._lease, self._seen_at = lease, time.monotonic()
        if lease.holder and lease.leaving:
            self._term.expect()
        elif lease.holder:
            self._term.stand_by(f"{lease.holder} holds the Lease {self._store.name}")

    async def leave(self) -> bool:
        """Announce that the Lease will be released, if it is held; return whether that is so."""
        self._leaving = True
        if not self._term.is_active:
            return False
        try:
            await self._keep(self._lease.epoch)
        except LeaseLostError:
            return False
        return True

    async def _take(self) -> bool:
        lease = self._lease
        if self._leaving:
            return False
        own = self._durations.lease
        ends = self._seen_at + max(min(lease.seconds, LONGEST_SECONDS), own)
        if lease.holder not in ("", self._holder) and time.monotonic() < ends:
            return False
        epoch = max(lease.epoch + 1, time.time_ns() // 1_000_000)
        try:
            await self._write(epoch)
        except LeaseTakenError:
            return False
        return True

    async def _lead(self) -> str:
        """Begin terms for as long as the Lease is held; return why it is no more."""
        terms = asyncio.create_task(
            self._terms.run(self._lease.epoch, lambda: self._valid_until, self._keep)
        )
        try:
            await self._renew_until_lost(terms)
        except LeaseLostError as lost:
            return str(lost)
        finally:
            terms.cancel()
            await asyncio.wait((terms,))
        return ""

    async def _renew_until_lost(self, terms: asyncio.Task[None]) -> None:
        while True:
            await asyncio.wait((terms,), timeout=self._jittered(self._durations.retry))
            if terms.done():
                terms.result()
            try:
                await self._renew(self._lease.epoch)
            except LeaseTakenError:
                await self._compare()
            except (KubeError, TimeoutError) as error:
                _log.warning("The Lease was not renewed", lease=self._store.name, error=str(error))

    async def _keep(self, epoch: int) -> None:
        """Write an epoch into the Lease; return once it is there."""
        while True:
            try:
                await self._renew(epoch)
            except LeaseTakenError:
                await self._compare()
            except (KubeError, TimeoutError) as error:
                _log.warning("The epoch was not written", lease=self._store.name, error=str(error))
            else:
                return
            await asyncio.sleep(self._durations.retry / LOOKS)

    async def _compare(self) -> None:
        """Find out who has written the Lease: this process, whose answer got lost, or another."""
        try:
            lease = await self._store.read(self._timeout)
        except (KubeError, TimeoutError):
            return
        if lease.holder != self._holder:
            self._lease, self._seen_at = lease, time.monotonic()
            self._valid_until = -math.inf
            raise LeaseLostError(f"{lease.holder or 'nobody'} holds the Lease {self._store.name}")
        self._lease = lease

    async def _renew(self, epoch: int) -> None:
        """Write the Lease, as its holder who has not let it lapse."""
        if time.monotonic() >= self._valid_until:
            raise LeaseLostError(
                f"the Lease {self._store.name} was not renewed for {self._durations.renew:g} s"
            )
        await self._write(epoch)

    async def _write(self, epoch: int) -> None:
        """Take or renew the Lease."""
        async with self._writing:
            sent, seconds = time.monotonic(), self._durations.lease
            self._lease = await self._store.write(
                self._lease,
                self._holder,
                seconds=seconds,
                epoch=epoch,
                leaving=self._leaving,
                timeout=self._timeout,
            )
            self._seen_at, self._valid_until = sent, sent + self._durations.renew
            self._term.extend(self._valid_until)

    async def release(self) -> None:
        """Let another process take the Lease at once."""
        self._term.stand_by("this process ends")
        async with self._writing:
            if self._lease.holder != self._holder or time.monotonic() >= self._valid_until:
                return
            self._valid_until = -math.inf
            try:
                await self._write_free()
            except (KubeError, TimeoutError, LeaseTakenError) as error:
                _log.warning("The Lease stays taken", lease=self._store.name, error=str(error))
            else:
                _log.info("The Lease was released", lease=self._store.name)

    async def _write_free(self) -> None:
        await self._store.write(
            self._lease,
            "",
            seconds=RELEASED_SECONDS,
            epoch=self._lease.epoch,
            timeout=self._timeout,
        )

    @property
    def _timeout(self) -> float:
        return self._durations.renew / 2

    def _jittered(self, seconds: float) -> float:
        return seconds * random.uniform(1, 1.2)
