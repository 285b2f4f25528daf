"""Calls Barrier at every binder, so that no bind of an earlier term is written any more."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc.aio
import structlog

from gateway.replicas.dns import Resolver
from moorage.v1 import binder_pb2 as pb
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.rpc.channel import connect
from moorage_host.tls.identities import service_identity
from moorage_host.tls.security import LOOPBACK, Security

LOOK_UP_AGAIN = 0.2
"""Seconds after which the names of binders are looked up again when there was no address."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A pod that a binder has bound, or may have if that is unknown."""

    namespace: str
    name: str
    uid: str
    node: str
    is_unknown: bool = False


@dataclass(slots=True, kw_only=True)
class Fenced:
    """What the binders have answered.

    Attributes:
        highest: The highest epoch that one has seen.
        is_held: Whether all accept the caller's epoch.
        binds: What they wrote, oldest first for each of them.
        answered: When, on the monotonic clock, all had answered.
        complete_since: From when on *binds* is complete.
        left_out: Why a binder has not answered, by its address.
    """

    highest: int
    is_held: bool = True
    binds: list[Written] = field(default_factory=list)
    answered: float = 0.0
    complete_since: float = 0.0
    left_out: dict[str, str] = field(default_factory=dict)


class Barriers:
    """The binders, each by its own address."""

    def __init__(
        self,
        targets: Sequence[str],
        holder: str,
        *,
        timeout: float,
        security: Security = LOOPBACK,
    ) -> None:
        """Call those at *targets* in the name of *holder*.

        A binder that cannot be reached for *timeout* seconds is left out.
        """
        self._resolver = Resolver(targets)
        self._holder = holder
        self._timeout = timeout
        self._security = security
        self._fenced: dict[str, str] = {}  # the version of Moorage by address
        self.left_out: dict[str, str] = {}

    async def fence(self, epoch: int) -> Fenced:
        """Fence all epochs below *epoch* at all binders."""
        self._fenced.clear()
        fenced = await self._call(await self._addresses(), epoch, {self._holder})
        self.left_out = fenced.left_out
        return fenced

    async def fence_others(self, epoch: int) -> Fenced | None:
        """Fence binders that have come since, or were left out; None if there are none."""
        addresses = await self._resolver.addresses()
        for gone in self._fenced.keys() - addresses:
            del self._fenced[gone]
        others = addresses - self._fenced.keys()
        if not others:
            self.left_out = {}
            return None
        # An epoch without a holder came with a bind: with one of the caller's, since it holds it.
        fenced = await self._call(others, epoch, {self._holder, ""})
        self.left_out = fenced.left_out
        return fenced

    def versions(self) -> dict[str, str]:
        """Return the version of Moorage of each binder that accepts the epoch, by its address."""
        return dict(sorted(self._fenced.items()))

    def note(self) -> str | None:
        """Return what to note about binders that were left out, if there are any."""
        problems = "; ".join(f"{address}: {why}" for address, why in self.left_out.items())
        return f"left out of the barrier until they answer: {problems}" if problems else None

    async def _addresses(self) -> set[str]:
        """Look the names up until there is an address, but not for ever."""
        found: set[str] = set()
        try:
            async with asyncio.timeout(self._timeout):
                while not (found := await self._resolver.addresses()):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_UP_AGAIN)
        except TimeoutError:
            _log.warning("No binder is found", problem=self._resolver.problem)
        return found

    async def _call(self, addresses: set[str], epoch: int, holders: set[str]) -> Fenced:
        """Call some binders; the epoch is held if it is one of these *holders* who has it."""
        fenced = Fenced(highest=epoch)
        if not addresses:
            fenced.left_out = {"any": self._resolver.problem or "the name has no address"}
        order = sorted(addresses)
        answers = await asyncio.gather(*(self._call_one(each, epoch) for each in order))
        memories = []
        for address, answer in zip(order, answers, strict=True):
            if isinstance(answer, str):
                fenced.left_out[address] = answer
                _log.warning("A binder is left out of a barrier", address=address, problem=answer)
                continue
            if answer.epoch > epoch or answer.holder not in holders:
                fenced.is_held = False
                fenced.highest = max(fenced.highest, answer.epoch)
                continue
            self._fenced[address] = answer.moorage_version
            memories.append(answer.memory.ToTimedelta().total_seconds())
            fenced.binds += map(_written, answer.binds)
        memory = 0.0 if fenced.left_out else min(memories, default=0.0)
        fenced.answered = time.monotonic()
        fenced.complete_since = fenced.answered - memory
        return fenced

    async def _call_one(self, address: str, epoch: int) -> pb.BinderServiceBarrierResponse | str:
        request = pb.BinderServiceBarrierRequest(epoch=epoch, holder=self._holder)
        identity = service_identity("binder")
        async with connect(address, security=self._security, identity=identity) as channel:
            stub = BinderServiceStub(channel)
            try:
                return await stub.Barrier(request, timeout=self._timeout, wait_for_ready=True)
            except grpc.aio.AioRpcError as error:
                return f"{error.code().name}: {error.details()}"


def _written(bind: pb.WrittenBind) -> Written:
    pod = bind.pod
    return Written(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=bind.node,
        is_unknown=bind.unknown,
    )
