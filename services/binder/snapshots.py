"""The state of the cluster, for bind plugins that read it."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Sequence

from moorage.snapshot import Snapshot
from moorage.v1 import binder_pb2 as pb
from moorage.v1 import types_pb2
from moorage_host.plugins import Replica
from moorage_host.rpc.sessions.state import MISTAKES, apply_state, refusal_of

Request = pb.BinderServiceFollowStateRequest
Response = pb.BinderServiceFollowStateResponse


class Snapshots:
    """The state that gateways send; binds see the one that was completed last."""

    def __init__(self) -> None:
        self.latest = Replica()
        self._changed = asyncio.Condition()
        self._streams: set[asyncio.Task[object]] = set()

    async def follow(
        self, requests: AsyncIterator[Request], plugins: Sequence[types_pb2.Plugin]
    ) -> AsyncIterator[Response]:
        """Keep the state of one stream for as long as it lasts.

        Raises:
            CallError: A state cannot be applied (INVALID_ARGUMENT).
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we are in one
        self._streams.add(task)
        replica = Replica()
        try:
            name = uuid.uuid4().hex[:12]
            yield Response(hello=types_pb2.Hello(replica=name, plugins=plugins))
            async for request in requests:
                await self._apply(replica, request.state)
                acknowledgement = types_pb2.Acknowledgement(
                    generation=replica.generation, policy_revision=request.state.policy.revision
                )
                yield Response(acknowledgement=acknowledgement)
        finally:
            self._streams.discard(task)
            if self.latest is replica:
                self.latest = Replica()  # nobody keeps it up to date any more

    async def at_least(self, generation: int, deadline: float) -> Snapshot:
        """Return the snapshot once it has a generation.

        Raises:
            TimeoutError: It does not by *deadline*, on the monotonic clock.
        """
        async with asyncio.timeout(deadline - time.monotonic()), self._changed:
            await self._changed.wait_for(lambda: self.latest.generation >= max(generation, 1))
        return self.latest.snapshot

    def drain(self) -> None:
        """End the streams; gateways go on with other binders."""
        for task in self._streams:
            task.cancel()

    async def _apply(self, replica: Replica, state: types_pb2.State) -> None:
        try:
            await apply_state(replica, state)
        except MISTAKES as error:
            raise refusal_of(error) from error
        if state.partial:
            return
        async with self._changed:
            replica.generation, self.latest = state.generation, replica
            self._changed.notify_all()
