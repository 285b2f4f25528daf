"""Ends earlier terms: a barrier at every binder, and the state brought up to what they wrote.

See `gateway.leadership.term` for why.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import grpc.aio
import structlog

from gateway.cluster.cluster import Cluster
from gateway.cluster.pods import UNREAD, read_pod
from gateway.cycle import BindCall
from gateway.replicas.dns import Resolver
from moorage.models import Pod
from moorage.v1 import binder_pb2 as pb
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.kube import KubeClient
from moorage_host.rpc.channel import connect
from moorage_host.rpc.errors import ending_of
from moorage_host.tls.identities import service_identity
from moorage_host.tls.security import LOOPBACK, Security

LOOK_UP_AGAIN = 0.2
"""Seconds after which the names of binders are looked up again when there was no address."""

MOST_READ = 64
"""Pods that are read one by one; for more, all pods are listed."""

READ_SECONDS = 10.0

READ_AGAIN = 1.0

_log = structlog.get_logger()


@dataclass(slots=True, kw_only=True)
class BarrierAnswers:
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
    binds: list[pb.WrittenBind] = field(default_factory=list)
    answered: float = 0.0
    complete_since: float = 0.0
    left_out: dict[str, str] = field(default_factory=dict)


Placed = list[tuple[Pod, pb.WrittenBind]]
"""Pods, each with its bind."""


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

    async def fence(self, epoch: int) -> BarrierAnswers:
        """Fence all epochs below *epoch* at all binders."""
        self._fenced.clear()
        result = await self._call(await self._addresses(), epoch, {self._holder})
        self.left_out = result.left_out
        return result

    async def fence_others(self, epoch: int) -> BarrierAnswers | None:
        """Fence binders that have come since, or were left out; None if there are none."""
        addresses = await self._resolver.addresses()
        for gone in self._fenced.keys() - addresses:
            del self._fenced[gone]
        others = addresses - self._fenced.keys()
        if not others:
            self.left_out = {}
            return None
        # An epoch without a holder came with a bind: with one of the caller's, since it holds it.
        result = await self._call(others, epoch, {self._holder, ""})
        self.left_out = result.left_out
        return result

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

    async def _call(self, addresses: set[str], epoch: int, holders: set[str]) -> BarrierAnswers:
        """Call some binders; the epoch is held if it is one of these *holders* who has it."""
        result = BarrierAnswers(highest=epoch)
        if not addresses:
            result.left_out = {"any": self._resolver.problem or "the name has no address"}
        order = sorted(addresses)
        answers = await asyncio.gather(*(self._call_one(each, epoch) for each in order))
        memories = []
        for address, answer in zip(order, answers, strict=True):
            if isinstance(answer, str):
                result.left_out[address] = answer
                _log.warning("A binder is left out of a barrier", address=address, problem=answer)
                continue
            if answer.epoch > epoch or answer.holder not in holders:
                result.is_held = False
                result.highest = max(result.highest, answer.epoch)
                continue
            self._fenced[address] = answer.moorage_version
            memories.append(answer.memory.ToTimedelta().total_seconds())
            result.binds += answer.binds
        memory = 0.0 if result.left_out else min(memories, default=0.0)
        result.answered = time.monotonic()
        result.complete_since = result.answered - memory
        return result

    async def _call_one(self, address: str, epoch: int) -> pb.BinderServiceBarrierResponse | str:
        request = pb.BinderServiceBarrierRequest(epoch=epoch, holder=self._holder)
        identity = service_identity("binder")
        async with connect(address, security=self._security, identity=identity) as channel:
            stub = BinderServiceStub(channel)
            try:
                return await stub.Barrier(request, timeout=self._timeout, wait_for_ready=True)
            except grpc.aio.AioRpcError as error:
                return ending_of(error)


class StateRecovery:
    """Finds the pods that the watch has not shown on their nodes yet."""

    def __init__(
        self, client: KubeClient, cluster: Cluster, resolve: Callable[[BindCall], None]
    ) -> None:
        """Compare with *cluster*; read pods that it does not know with *client*.

        Binds whose outcome no binder knows go to *resolve*, which finds out.
        """
        self.state = cluster.state
        self._client = client
        self._cluster = cluster
        self._resolve = resolve

    async def missing(self, result: BarrierAnswers) -> Placed:
        """Return the pods that have to be assumed, once the state has everything else."""
        await self._cluster.until_synced()
        await self._cluster.until_pods_as_of(result.complete_since)
        unknown = [bind for bind in result.binds if self._is_unknown(bind.pod.uid)]
        if len(unknown) > MOST_READ:
            await self._cluster.until_pods_as_of(result.answered)
            read: Sequence[Pod | None] = []
        else:
            read = await asyncio.gather(*(self._read(bind.pod) for bind in unknown))
        by_uid = {pod.uid: pod for pod in read if pod is not None}
        placed = []
        for bind in result.binds:
            seen, read_now = self.state.pods.get(bind.pod.uid), by_uid.get(bind.pod.uid)
            if seen is not None and not seen.spec.node_name:
                placed.append((seen, bind))
            # What was read may show its node already; the watch does not.
            if seen is None and read_now and read_now.spec.node_name in ("", bind.node):
                placed.append((read_now, bind))
        return placed

    def assume(self, placed: Placed) -> None:
        """Count pods as placed until the watch shows them."""
        for pod, bind in placed:
            if self.state.place_of(pod.uid) != bind.node and not self.state.has_ended(pod.uid):
                self.state.assume(pod, bind.node, dict(bind.annotations))
                self.state.confirm(pod.uid)
                if bind.unknown:
                    self._resolve(_given_up(bind))

    def _is_unknown(self, uid: str) -> bool:
        return self.state.pods.get(uid) is None and not self.state.has_ended(uid)

    async def _read(self, pod: pb.PodReference) -> Pod | None:
        """Read a pod, however long the API server is away; None if the pod is gone."""
        while True:
            try:
                return await read_pod(
                    self._client, pod.namespace, pod.name, pod.uid, timeout=READ_SECONDS
                )
            except UNREAD as error:
                _log.warning("A pod that was bound is not read yet", error=str(error))
                await asyncio.sleep(READ_AGAIN)


def _given_up(bind: pb.WrittenBind) -> BindCall:
    """Return the call of a bind that no binder works on any more."""
    return BindCall(
        namespace=bind.pod.namespace,
        name=bind.pod.name,
        uid=bind.pod.uid,
        node=bind.node,
        deadline=asyncio.get_running_loop().time(),
    )
