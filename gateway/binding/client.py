"""The gateway's connection to the binder: binds go over one stream, where a message is no call.

Knows nothing of pods and nodes; `binding` repeats what is worth repeating. A renewed certificate
replaces the connection: the former one is used until the new one is ready, and stays until all is
answered.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import grpc
import grpc.aio

from moorage.v1 import binder_pb2 as pb
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.rpc.channel import connect
from moorage_host.rpc.stream import MessageStream, StreamLostError
from moorage_host.tls.certificate import Certificate
from moorage_host.tls.identities import service_identity
from moorage_host.tls.security import Security

SESSION = "/moorage.v1.BinderService/Session"

CODES = {code.value[0]: code for code in grpc.StatusCode}

SILENCE_SECONDS = 1.0
"""A binder answers every bind in time, even if only that the outcome is unknown. One that sends
nothing for so long and lets a bind's deadline pass hangs; the next binds open another stream."""

NOT_REACHED = "the binder is not reached"

KEEPALIVE = (1.0, 2.0)
"""Seconds until a silent binder is asked for a sign of life, and for which that may be missing: its
binds go to another one well before the deadline of a call, 5 s by default."""

LONGEST_CALL = 30.0
"""Seconds that calls which are no binds have to end on a connection that was replaced."""

Answer = pb.BinderServiceSessionResponse


class BinderError(Exception):
    """The binder did not do a bind, or it is not known whether it did.

    Attributes:
        code: What gRPC calls it.
        reason: What the binder calls it, such as "STALE_EPOCH"; may be empty.
        plugins: What plugins did.
        sent_at: When the bind went over a stream that then broke, in `loop.time()`; 0 if none did.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        reason: str = "",
        plugins: Sequence[pb.BindPluginReport] = (),
        sent_at: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.plugins = plugins
        self.sent_at = sent_at


class BinderClient:
    """A channel to the binder.

    Attributes:
        target: Where the binder is.
        stub: For single calls.
        waits: For each pod, by uid, whose bind may wait for others: the `plugin` that has it wait,
            and what is `awaited`, or nothing.
    """

    def __init__(self, target: str, security: Security) -> None:
        """Connect to the binder at *target*."""
        self.target = target
        self.waits: dict[str, dict[str, str]] = {}
        self._security = security
        self._use(self._open())

    async def bind(
        self, request: pb.BinderServiceSessionRequest, deadline: float
    ) -> Sequence[pb.BindPluginReport]:
        """Have a pod bound, and return what plugins did.

        Waits for a binder until the deadline if there is none; the first bind opens a stream.

        Args:
            request: The bind; the number and the time are set here.
            deadline: When an answer becomes useless, in seconds of `loop.time()`.

        Raises:
            BinderError: UNAVAILABLE if the stream broke, DEADLINE_EXCEEDED if there is no answer in
                time, or what the binder answered.
        """
        now = asyncio.get_running_loop().time
        messages, start, sent_at = self._streams.current(), now(), 0.0
        request.id, answer = messages.expect(deadline)

        def encode() -> bytes:
            nonlocal sent_at
            if answer.done():
                return b""  # its time ran out before there was a binder
            sent_at = now()
            left = max(deadline - sent_at, 0.001)
            request.timeout.FromNanoseconds(int(left * 1e9))
            request.sent.FromNanoseconds(int((sent_at - messages.opened) * 1e9))
            return request.SerializeToString()

        if request.reports_waits:
            self.waits[request.bind.uid] = {}
        messages.send(encode)
        try:
            answered = await answer
        except StreamLostError as error:
            code = grpc.StatusCode.UNAVAILABLE
            raise BinderError(code, str(error), sent_at=sent_at) from error
        except TimeoutError as error:
            with suppress(ValueError):  # without a binder the messages would pile up
                messages.outbox.remove(encode)
            if max(start, messages.last_heard) + SILENCE_SECONDS <= now():
                messages.break_off("the binder does not answer")
            is_reached = self._channel.get_state() is grpc.ChannelConnectivity.READY
            problem = "the binder did not answer in time" if is_reached else NOT_REACHED
            raise BinderError(grpc.StatusCode.DEADLINE_EXCEEDED, problem) from error
        finally:
            if request.reports_waits:
                self.waits.pop(request.bind.uid, None)
        if status := answered.status.code:
            code = CODES.get(status, grpc.StatusCode.UNKNOWN)
            raise BinderError(code, answered.status.message, answered.reason, answered.plugins)
        return answered.plugins

    async def retry_pods(
        self, plugin: str, reason: str, pods: Sequence[tuple[str, str, str]]
    ) -> int:
        """Have pods tried again, by namespace, name and uid; return how many were written to.

        Raises:
            BinderError: The binder fails, or does not answer in time.
        """
        request = pb.BinderServiceRetryPodsRequest(plugin=plugin, reason=reason)
        for namespace, name, uid in pods:
            request.pods.add(namespace=namespace, name=name, uid=uid)
        try:
            answer = await self.stub.RetryPods(request, timeout=LONGEST_CALL, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            raise BinderError(error.code(), str(error.details())) from error
        return int(answer.written)

    async def follow_certificate(self) -> None:
        """Replace the connection whenever this process's certificate is renewed."""
        certificate = self._security.certificate
        async with asyncio.TaskGroup() as group:
            while True:
                await self._security.renewed(certificate)
                certificate, channel = self._security.certificate, self._open()
                if await self._is_ready(channel, certificate):
                    group.create_task(_end(self._channel, self._streams))
                    self._use(channel)
                else:
                    await channel.close()

    async def close(self) -> None:
        """Hang up."""
        await self._streams.close()
        await self._channel.close()

    async def _is_ready(self, channel: grpc.aio.Channel, certificate: Certificate | None) -> bool:
        """Wait until a channel is connected, or its certificate has been renewed again."""
        ready = asyncio.create_task(channel.channel_ready())
        renewed = asyncio.create_task(self._security.renewed(certificate))
        try:
            await asyncio.wait((ready, renewed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
            renewed.cancel()
        return ready.done()

    def _open(self) -> grpc.aio.Channel:
        identity = service_identity("binder")
        return connect(self.target, security=self._security, identity=identity, keepalive=KEEPALIVE)

    def _use(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self.stub = BinderServiceStub(channel)
        self._streams = _Streams(channel, self.waits)


class _Streams:
    """The streams of one channel: one takes binds, on the others only answers are to come."""

    def __init__(self, channel: grpc.aio.Channel, waits: dict[str, dict[str, str]]) -> None:
        self._open: grpc.aio.StreamStreamMultiCallable[bytes, Answer] = channel.stream_stream(
            SESSION, response_deserializer=Answer.FromString
        )
        self._waits = waits
        self._streams: list[MessageStream[Answer]] = []
        self._takes_binds = False  # the last one

    def current(self) -> MessageStream[Answer]:
        """Return the stream that takes binds; open one if there is none."""
        if self._takes_binds and self._streams[-1].lost is None:
            return self._streams[-1]

        def receive(answer: Answer) -> None:
            if answer.HasField("wait"):
                if (wait := answer.wait).uid in self._waits:  # its bind was not given up
                    self._waits[wait.uid] = {"plugin": wait.plugin, "awaited": wait.awaited}
            elif not answer.ending:
                stream.resolve(answer.id, answer)
            elif stream is self._streams[-1]:
                self._takes_binds = False  # the binds under way are still answered

        stream = MessageStream(self._open(wait_for_ready=True), receive)
        self._streams = [each for each in self._streams if each.lost is None] + [stream]
        self._takes_binds = True
        return stream

    async def answered(self) -> None:
        """Wait until every bind has its answer, or its time is over."""
        for stream in self._streams:
            await stream.answered()

    async def close(self) -> None:
        for stream in self._streams:
            await stream.close("the gateway ends")


async def _end(channel: grpc.aio.Channel, streams: _Streams) -> None:
    await streams.answered()
    await streams.close()
    await channel.close(LONGEST_CALL)
