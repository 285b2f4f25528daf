"""Keeps a stream to the binder open, over which all binds go: a message costs less than a call.

Knows nothing of pods and nodes; who calls it repeats what is worth repeating.
"""

import asyncio

import grpc
import grpc.aio
import structlog

from gateway.binding.stream import BinderError, BindStream, NoSessionsError
from moorage.v1 import binder_pb2 as pb
from moorage.v1.binder_pb2_grpc import BinderServiceStub

__all__ = ["BindSession", "BinderError"]

SESSION = "/moorage.v1.BinderService/Session"

CALL_SECONDS = 60.0
"""How long binds are calls after a binder had no sessions, until it is asked again."""

log = structlog.get_logger()


class BindSession:
    """Hands binds to the binder behind a channel; the stream is opened when one comes."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Use *channel*, which others may use as well."""
        self._open: grpc.aio.StreamStreamMultiCallable[bytes, pb.BinderServiceSessionResponse]
        self._open = channel.stream_stream(
            SESSION, response_deserializer=pb.BinderServiceSessionResponse.FromString
        )
        self._call = BinderServiceStub(channel).Bind
        self._stream: BindStream | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # also those of streams that end
        self._calls_until = 0.0
        self._is_told = False

    async def bind(self, request: pb.BindRequest, deadline: float) -> None:
        """Have a pod bound; wait for a binder until the deadline if there is none.

        Args:
            request: The bind.
            deadline: Until when an answer is of use, in seconds of `loop.time()`.

        Raises:
            BinderError: UNAVAILABLE if the stream broke, DEADLINE_EXCEEDED if there is no answer in
                time, or what the binder answered.
        """
        if asyncio.get_running_loop().time() >= self._calls_until:
            try:
                return await self._open_stream().bind(request, deadline)
            except NoSessionsError:
                self._use_calls()
        return await self._bind_by_call(request, deadline)

    async def close(self) -> None:
        """End the stream."""
        if self._stream is not None:
            self._stream.break_off("the gateway ends")
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _open_stream(self) -> BindStream:
        if self._stream is None or not self._stream.is_open:
            self._stream = BindStream(self._open(wait_for_ready=True))
            for task in self._stream.tasks:
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        return self._stream

    def _use_calls(self) -> None:
        self._calls_until = asyncio.get_running_loop().time() + CALL_SECONDS
        if not self._is_told:
            log.info("The binder is of an earlier version and has no sessions; binds are calls")
        self._is_told = True

    async def _bind_by_call(self, request: pb.BindRequest, deadline: float) -> None:
        remaining = deadline - asyncio.get_running_loop().time()
        try:
            await self._call(request, timeout=max(remaining, 0.001), wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                self._calls_until = 0.0  # the next one may be of another version
            raise BinderError(error.code(), error.details() or "") from error
