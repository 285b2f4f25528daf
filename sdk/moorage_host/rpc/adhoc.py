"""Ad-hoc calls: those of people and other clients, which must not keep gateways waiting.

A few run at a time, a few wait, and the rest is refused (`ConcurrencyLimit`), before their messages
are read. Each is answered in chunks of its nodes, and each chunk is a small cycle in a turn of its
own, so that a session's cycle waits for one chunk at most (`Chunks`). Between chunks there is a
rest, so that all ad-hoc calls together get a fifth of the time (`Throttle`).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Generic, TypeVar

import grpc
from msgspec.structs import replace

from moorage.execution import Supervisor, mark, owner_of
from moorage.models import NodeManifest
from moorage.v1 import filter_pb2, scorer_pb2
from moorage_host.plugins import CycleInput, Replica
from moorage_host.plugins.replica import Engine
from moorage_host.rpc.convert import node_from_proto
from moorage_host.rpc.errors import CallError
from moorage_host.slots import Slots
from moorage_host.tracing.spans import plugin_spans

T = TypeVar("T")
Run = TypeVar("Run")

AdhocRequest = filter_pb2.FilterRequest | scorer_pb2.ScoreRequest

REFUSAL_SECONDS = 0.25
"""How long a refused call waits for its refusal, as most callers try again at once."""

CHUNK_SECONDS = 0.001
"""How long a chunk should take; a plugin that needs long for one node takes longer."""

REST = 4.0
"""The pause after a chunk, as a multiple of what it took: ad-hoc calls get a fifth of the time."""

FIRST_NODES, FEWEST_NODES, MOST_NODES = 32, 4, 512
"""Nodes of the first chunk, and of those after it, which depend on how long chunks take."""


_NO_TURN: AbstractAsyncContextManager[object] = nullcontext()


class ConcurrencyLimit:
    """Lets a few calls of some methods run, and a few wait."""

    def __init__(self, *methods: str, calls: int, waiting: int, message_bytes: int) -> None:
        """Limit calls of *methods*.

        Args:
            methods: As gRPC names them, "/PACKAGE.SERVICE/METHOD".
            calls: How many run at a time.
            waiting: How many may wait; more get RESOURCE_EXHAUSTED.
            message_bytes: The largest message.
        """
        self.methods = frozenset(methods)
        self.message_bytes = message_bytes
        self._slots = Slots(calls, waiting)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Run a call inside the block.

        Raises:
            CallError: Too many wait already (RESOURCE_EXHAUSTED).
        """
        if self._slots.is_full:
            await self._slots.slow_down(REFUSAL_SECONDS)
            raise CallError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{self._slots.running} calls by hand run and {self._slots.waiting} wait: call "
                "again later",
                reason="BY_HAND_BUSY",
            )
        async with self._slots.slot():
            yield

    def check(self, message: bytes) -> None:
        """Refuse a message that is too large.

        Raises:
            CallError: It is (INVALID_ARGUMENT).
        """
        if len(message) > self.message_bytes:
            raise CallError(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"the message has {len(message)} bytes: a call by hand may have "
                f"{self.message_bytes}; send fewer nodes",
            )


class Throttle:
    """Runs one chunk at a time, whichever call it is of, and pauses after it."""

    def __init__(self) -> None:
        self._running = asyncio.Lock()
        self._rests_until = 0.0

    @asynccontextmanager
    async def chunk(
        self, turn: AbstractAsyncContextManager[object] = _NO_TURN
    ) -> AsyncIterator[None]:
        """Run a chunk, in a *turn* if it needs one, inside the block: a millisecond's work.

        The pause is in proportion to all the time that it held the turn, whatever it did with it,
        and however it ended.
        """
        async with self._running:
            if (rest := self._rests_until - time.perf_counter()) > 0:
                await asyncio.sleep(rest)
            async with turn:
                start = time.perf_counter()
                try:
                    yield
                finally:
                    end = time.perf_counter()
                    self._rests_until = end + REST * (end - start)

    async def each(self, items: Iterable[T], work: Callable[[T], object]) -> None:
        """Do the work on each of the items, in chunks."""
        remaining, is_over = iter(items), False
        while not is_over:
            async with self.chunk():
                end = time.perf_counter() + CHUNK_SECONDS
                is_over = True
                for item in remaining:
                    work(item)
                    if time.perf_counter() >= end:
                        is_over = False
                        break


def check_count(nodes: int, most: int) -> None:
    """Refuse an ad-hoc call that is about too many nodes.

    Raises:
        CallError: It is (INVALID_ARGUMENT).
    """
    if nodes > most:
        raise CallError(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"{nodes} nodes: a call by hand may be about {most}; name at most so many (node_names)",
        )


async def given_nodes(
    request: AdhocRequest, most: int, throttle: Throttle
) -> tuple[NodeManifest, ...]:
    """Return the nodes that a request brings.

    Raises:
        CallError: They are too many, or malformed (INVALID_ARGUMENT).
    """
    if len(request.nodes) > most:
        raise CallError(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"{len(request.nodes)} nodes: a call by hand may bring {most}; name nodes that the "
            "cluster has (node_names)",
        )
    given: list[NodeManifest] = []
    await throttle.each(request.nodes, lambda node: given.append(node_from_proto(node)[0]))
    return tuple(given)


class Chunks(Generic[Run]):
    """The chunks of one call.

    Attributes:
        names: The nodes that it is about.
        generation: That of the state in the first chunk.
    """

    def __init__(
        self,
        replica: Replica,
        work: CycleInput,
        *,
        turn: AbstractAsyncContextManager[object],
        throttle: Throttle,
        is_open: Callable[[], bool],
        deadline: float,
    ) -> None:
        """Ask about the nodes that *work* names.

        Args:
            replica: The state.
            work: The pod and the nodes.
            turn: Held in each chunk; the state may change between two.
            throttle: Says when the next chunk may run.
            is_open: Whether the session still is whose state it is.
            deadline: When the answer becomes useless, on `time.perf_counter`.
        """
        self.names = work.names or ()
        self.generation = replica.generation
        self._replica = replica
        self._policy = replica.policy
        self._work = work
        self._turn = turn
        self._throttle = throttle
        self._is_open = is_open
        self._deadline = deadline
        self._size = FIRST_NODES
        self._in_part = 0

    @property
    def is_one(self) -> bool:
        """Whether one chunk does for all nodes."""
        return len(self.names) <= self._size

    def parts(self) -> Iterator[slice]:
        """Yield positions of nodes, those of one chunk at a time."""
        at = 0
        while at < len(self.names) or not at:  # plugins are asked even if there is no node
            part = slice(at, at + self._size)
            self._in_part = len(self.names[part])
            yield part
            at = part.stop

    async def run(self, engine: Engine[Run], part: slice | None = None) -> Run:
        """Run *engine* on the nodes of a part, or on all, in one chunk.

        Raises:
            CallError: The policy has changed since the call began, or the session has ended.
            NoStateError: See `Replica.run`, as for the other errors.
        """
        names = self.names if part is None else self.names[part]
        async with self._throttle.chunk(self._turn):
            if self._replica.policy is not self._policy or not self._is_open():
                raise CallError(
                    grpc.StatusCode.UNAVAILABLE,
                    "the policy has changed, or the gateway is gone, since the call began: "
                    "call again",
                )
            mark.memory[mark.POD] = 0  # what people ask about need not be a pod of the cluster
            supervisor = Supervisor(owner=owner_of(self._work.pod), deadline=self._deadline)
            work = replace(self._work, names=names)
            try:
                _, run = await self._replica.run(work, engine, supervisor)
            finally:
                plugin_spans(supervisor.runs)
        self._fit(sum(each.node_seconds for each in supervisor.runs))
        return run

    def _fit(self, seconds: float) -> None:
        """Choose how many nodes the next chunk has, by the time that the last ones took."""
        fitting = self._in_part * CHUNK_SECONDS / max(seconds, 1e-6)
        self._size = int(min(max(fitting, FEWEST_NODES), MOST_NODES))
