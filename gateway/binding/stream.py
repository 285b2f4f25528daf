"""Sends binds to the binder over one stream: a message costs less than a call.

Knows nothing of pods and nodes. The caller repeats what is worth repeating.
"""

import asyncio
from collections.abc import Sequence

import grpc
import grpc.aio

from moorage.v1 import binder_pb2 as pb
from moorage_host.rpc.convert import set_duration
from moorage_host.rpc.stream import MessageStream, StreamLostError

SESSION = "/moorage.v1.BinderService/Session"

CODES = {code.value[0]: code for code in grpc.StatusCode}

SILENCE_SECONDS = 1.0
"""A binder answers every bind in time, even if only that the outcome is unknown. One that sends
nothing for so long and lets a bind's deadline pass hangs; the next binds open another stream."""

Stream = MessageStream[pb.BinderServiceSessionResponse]


class BinderError(Exception):
    """The binder did not do a bind, or it is not known whether it did.

    Attributes:
        code: What gRPC calls it.
        reason: What the binder calls it, such as "STALE_EPOCH"; may be empty.
        plugins: What plugins did.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        reason: str = "",
        plugins: Sequence[pb.BindPluginReport] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.plugins = plugins


class BindStream:
    """Sends binds to the binder behind a channel; the first bind opens a stream."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Use *channel*, which others may use as well."""
        self._open: grpc.aio.StreamStreamMultiCallable[bytes, pb.BinderServiceSessionResponse]
        self._open = channel.stream_stream(
            SESSION, response_deserializer=pb.BinderServiceSessionResponse.FromString
        )
        self._current: Stream | None = None
        self._streams: list[Stream] = []  # also those on which only answers are to come
        self._unanswered: set[asyncio.Future[pb.BinderServiceSessionResponse]] = set()

    async def bind(self, request: pb.BindRequest, deadline: float) -> Sequence[pb.BindPluginReport]:
        """Have a pod bound, and return what plugins did.

        Waits for a binder until the deadline if there is none.

        Args:
            request: The bind.
            deadline: When an answer becomes useless, in seconds of `loop.time()`.

        Raises:
            BinderError: UNAVAILABLE if the stream broke, DEADLINE_EXCEEDED if there is no answer in
                time, or what the binder answered.
        """
        stream, now = self._stream(), asyncio.get_running_loop().time
        start, (number, answer) = now(), stream.expect(deadline)

        self._unanswered.add(answer)
        answer.add_done_callback(self._unanswered.discard)

        def encode() -> bytes:
            if answer.done():
                return b""  # its time ran out before there was a binder
            message = pb.BinderServiceSessionRequest(id=number, bind=request)
            set_duration(message.timeout, max(deadline - now(), 0.001))
            return message.SerializeToString()

        stream.send(encode)
        try:
            answered = await answer
        except StreamLostError as error:
            raise BinderError(grpc.StatusCode.UNAVAILABLE, str(error)) from error
        except TimeoutError as error:
            if max(start, stream.last_heard) + SILENCE_SECONDS <= now():
                stream.break_off("the binder does not answer")
            raise BinderError(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded") from error
        if status := answered.status.code:
            code = CODES.get(status, grpc.StatusCode.UNKNOWN)
            raise BinderError(code, answered.status.message, answered.reason, answered.plugins)
        return answered.plugins

    async def answered(self) -> None:
        """Wait until every bind has its answer, or its time is over."""
        if self._unanswered:
            await asyncio.wait(self._unanswered)

    async def close(self) -> None:
        """End the stream."""
        for stream in self._streams:
            await stream.close("the gateway ends")

    def _stream(self) -> Stream:
        """Return the stream that takes binds; open one if there is none."""
        if self._current is None or self._current.lost is not None:
            call = self._open(wait_for_ready=True)
            self._current = stream = Stream(call, lambda answer: self._receive(stream, answer))
            self._streams = [each for each in self._streams if each.lost is None] + [stream]
        return self._current

    def _receive(self, stream: Stream, answer: pb.BinderServiceSessionResponse) -> None:
        if answer.ending:
            self._current = None  # the binds under way are still answered
        else:
            stream.resolve(answer.id, answer)
