"""The state of the cluster, for bind plugins that read it."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from moorage import __version__
from moorage.snapshot import Snapshot
from moorage.v1 import binder_pb2 as pb
from moorage.v1 import types_pb2
from moorage_host.plugins import Replica
from moorage_host.rpc.state import MISTAKES, apply_state, check_room, refusal_of

Request = pb.BinderServiceFollowStateRequest
Response = pb.BinderServiceFollowStateResponse


@dataclass(slots=True)
class _Stream:
    task: asyncio.Task[object]
    holder: str = ""


class Snapshots:
    """The states that gateways send, one for each stream.

    A bind sees the one of its gateway, by the holder. A bind without a holder, as by hand, sees the
    one of the stream that has been open longest, of those that have its generation.
    """

    def __init__(self, most: int = 8) -> None:
        """Keep at most so many states."""
        self._most = most
        self._changed = asyncio.Condition()
        self._streams: dict[Replica, _Stream] = {}

    async def follow(
        self, requests: AsyncIterator[Request], plugins: Sequence[types_pb2.Plugin]
    ) -> AsyncIterator[Response]:
        """Keep the state of one stream for as long as it lasts.

        Raises:
            CallError: A state cannot be applied (INVALID_ARGUMENT), or too many streams are open
                (RESOURCE_EXHAUSTED).
        """
        check_room(len(self._streams), self._most)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are in one
        replica = Replica()
        self._streams[replica] = stream = _Stream(task)
        try:
            name = uuid.uuid4().hex[:12]
            yield Response(
                hello=types_pb2.Hello(replica=name, plugins=plugins, moorage_version=__version__)
            )
            async for request in requests:
                stream.holder = request.holder
                await self._apply(replica, request.state)
                acknowledgement = types_pb2.Acknowledgement(
                    generation=replica.generation, policy_revision=request.state.policy.revision
                )
                yield Response(acknowledgement=acknowledgement)
        finally:
            del self._streams[replica]

    async def at_least(self, holder: str, generation: int, deadline: float) -> Snapshot:
        """Return the snapshot of a holder once it has a generation; of anybody if that is "".

        Raises:
            TimeoutError: It does not by *deadline*, on the monotonic clock.
        """
        async with asyncio.timeout(deadline - time.monotonic()), self._changed:
            least = max(generation, 1)
            found = await self._changed.wait_for(lambda: self._state_at(holder, least))
        assert found is not None  # noqa: S101 - waited for
        return found.snapshot

    def drain(self) -> None:
        """End the streams; gateways go on with other binders."""
        for stream in self._streams.values():
            stream.task.cancel()

    def _state_at(self, holder: str, generation: int) -> Replica | None:
        fitting = (
            state
            for state, stream in self._streams.items()
            if holder in ("", stream.holder) and state.generation >= generation
        )
        return next(fitting, None)

    async def _apply(self, replica: Replica, state: types_pb2.State) -> None:
        try:
            await apply_state(replica, state)
        except MISTAKES as error:
            raise refusal_of(error) from error
        if state.partial:
            return
        async with self._changed:
            replica.generation = state.generation
            self._changed.notify_all()
