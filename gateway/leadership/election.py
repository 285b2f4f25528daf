"""The election: of several gateways, the one that holds the Lease begins terms.

The Lease of coordination.k8s.io says which gateway decides, and has the epoch of its term. Each
write names the version that it replaces, so that of two gateways only one succeeds. Whoever may
write Leases may write nonsense into this one: an epoch or a duration that no gateway writes is
ignored with a warning, since the binders know the highest epoch anyway.

As client-go does it: the Lease ends when it was not seen to change for its duration, on this
process's monotonic clock. Its holder stops deciding before that, after the renew deadline, counted
from when it sent the last successful renewal. So clocks need not agree, only run equally fast.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from gateway.leadership.term import Term
from gateway.settings import GatewaySettings
from moorage_host.epochs import highest_epoch
from moorage_host.kube import KubeClient, KubeError, KubeStatusError, micro_time

LOOKS = 4
"""How often a gateway that stands by looks at the Lease in a retry period: it is to notice at once
that the Lease was released."""

RELEASED_SECONDS = 1.0

EPOCH = "moorage.io/epoch"

LEAVING = "moorage.io/leaving"
"""Whether the holder is about to release the Lease, so that the next one may get ready."""

CONFLICT, NOT_FOUND = 409, 404

LONGEST_SECONDS = 60.0
"""A duration in a Lease that is longer than this, and than this process's own, is nonsense."""

_log = structlog.get_logger()


class LeaseTakenError(Exception):
    """Another process has written the Lease meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A version of the Lease; the first one has not been created.

    Attributes:
        holder: Who decides; empty for nobody.
        seconds: How long after its last change the Lease ends, as its holder says.
        epoch: Of the newest term.
        leaving: Whether the holder is about to release it.
        version: Changes with every write; empty if there is none yet.
        document: Everything, as the API server has it.
    """

    holder: str = ""
    seconds: float = 0.0
    epoch: int = 0
    leaving: bool = False
    version: str = ""
    document: dict[str, Any] = field(default_factory=dict)


class LeaseStore:
    """Reads and writes one Lease."""

    def __init__(self, client: KubeClient, namespace: str, name: str, *, usual: float) -> None:
        """Read and write the Lease *name*, whose duration is *usual* unless it says another one."""
        self._usual = usual
        self.name = f"{namespace}/{name}"
        self._client = client
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._metadata = {"name": name, "namespace": namespace}
        self._doubted = ""  # the version about which was warned last

    async def read(self, timeout: float) -> Lease:
        """Return the newest version; raises KubeError and TimeoutError."""
        path = f"{self._folder}/{self._metadata['name']}"
        answer = await self._client.request("GET", path, timeout=timeout)
        if answer.status == NOT_FOUND:
            return Lease()
        return self._lease(answer.check().body)

    async def write(
        self,
        before: Lease,
        holder: str,
        *,
        seconds: float,
        epoch: int,
        leaving: bool = False,
        timeout: float,
    ) -> Lease:
        """Replace a version, or create the Lease; return the new version.

        Raises the same as `read`, and LeaseTakenError if there is a newer version. After a
        TimeoutError the write may have been done.
        """
        notes = {EPOCH: str(epoch), **({LEAVING: "true"} if leaving else {})}
        body = msgspec.json.encode(self._document(before, holder, seconds, notes))
        method, path = "POST", self._folder
        if before.version:
            method, path = "PUT", f"{self._folder}/{self._metadata['name']}"
        answer = await self._client.request(method, path, body=body, timeout=timeout)
        try:
            return replace(self._lease(answer.check().body), epoch=epoch)
        except KubeStatusError as error:
            if error.status in (CONFLICT, NOT_FOUND):
                raise LeaseTakenError(str(error)) from error
            raise

    def _document(
        self, before: Lease, holder: str, seconds: float, notes: dict[str, str]
    ) -> dict[str, Any]:
        old, now = before.document, micro_time(datetime.now(UTC))
        metadata = {**self._metadata, **old.get("metadata", {})}
        others = {k: v for k, v in metadata.get("annotations", {}).items() if k != LEAVING}
        metadata["annotations"] = others | notes
        spec = {**old.get("spec", {}), "renewTime": now, "holderIdentity": holder}
        spec["leaseDurationSeconds"] = max(1, math.ceil(seconds))
        if holder and holder != before.holder:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + bool(before.version)
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        return {**old, **kind, "metadata": metadata, "spec": spec}

    def _lease(self, body: bytes) -> Lease:
        document = msgspec.json.decode(body, type=dict[str, Any])
        metadata, spec = document["metadata"], document.get("spec", {})
        notes = metadata.get("annotations") or {}
        version, doubts = metadata["resourceVersion"], []
        epoch, seconds = _number(notes.get(EPOCH, "0")), _number(spec.get("leaseDurationSeconds"))
        if epoch is None or epoch > highest_epoch():
            doubts.append(f"{EPOCH} is {str(notes[EPOCH])[:40]!r}")
            epoch = 0
        if seconds is None:
            doubts.append(f"leaseDurationSeconds is {str(spec['leaseDurationSeconds'])[:40]!r}")
        elif seconds > max(LONGEST_SECONDS, math.ceil(self._usual)):
            doubts.append(f"leaseDurationSeconds is {seconds}")
            seconds = None
        if doubts and version != self._doubted:
            self._doubted = version
            _log.warning(
                "The Lease has values that no gateway should write; they are ignored",
                lease=self.name,
                problem="; ".join(doubts),
            )
        return Lease(
            holder=spec.get("holderIdentity") or "",
            seconds=self._usual if seconds is None else float(seconds),
            epoch=epoch,
            leaving=notes.get(LEAVING) == "true",
            version=version,
            document=document,
        )


def _number(value: object) -> int | None:
    """Return a whole number that is not negative, of at most 20 digits; None for anything else."""
    text = str(value or 0)
    return int(text) if text.isdecimal() and len(text) <= 20 else None


BeginTerms = Callable[
    [int, Callable[[], float], Callable[[int], Awaitable[None]]], Coroutine[Any, Any, None]
]
"""Begins one term after the other until cancelled; see `TermLoop.run`."""


class LeaseLostError(Exception):
    """This process holds the Lease no more; the message says why."""


class Election:
    """Takes the Lease, keeps it, and releases it in the end."""

    def __init__(
        self,
        client: KubeClient,
        term: Term,
        begin_terms: BeginTerms,
        holder: str,
        settings: GatewaySettings,
    ) -> None:
        """Have *begin_terms* begin terms of *holder* while it holds the Lease."""
        self._lease_seconds = settings.lease_duration
        self._renew_seconds = settings.lease_renew_deadline or self._lease_seconds * 2 / 3
        self._retry_seconds = settings.lease_retry_period or self._renew_seconds / 5
        self._store = LeaseStore(
            client,
            client.namespace,
            settings.lease_name,
            usual=self._lease_seconds,
        )
        self._term = term
        self._begin_terms = begin_terms
        self._holder = holder
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
            await asyncio.sleep(self._jittered(self._retry_seconds / LOOKS))

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
        ends = self._seen_at + max(lease.seconds, self._lease_seconds)
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
            self._begin_terms(self._lease.epoch, lambda: self._valid_until, self._keep)
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
            await asyncio.wait((terms,), timeout=self._jittered(self._retry_seconds))
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
            await asyncio.sleep(self._retry_seconds / LOOKS)

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
                f"the Lease {self._store.name} was not renewed for {self._renew_seconds:g} s"
            )
        await self._write(epoch)

    async def _write(self, epoch: int) -> None:
        """Take or renew the Lease."""
        async with self._writing:
            sent, seconds = time.monotonic(), self._lease_seconds
            self._lease = await self._store.write(
                self._lease,
                self._holder,
                seconds=seconds,
                epoch=epoch,
                leaving=self._leaving,
                timeout=self._timeout,
            )
            self._seen_at, self._valid_until = sent, sent + self._renew_seconds
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
        return self._renew_seconds / 2

    def _jittered(self, seconds: float) -> float:
        return seconds * random.uniform(1, 1.2)
