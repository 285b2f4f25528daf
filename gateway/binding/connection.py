"""The connection to the binder, which another one replaces when a certificate is renewed."""

import asyncio

import grpc.aio

from gateway.binding.stream import BindStream
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.rpc.channel import connect
from moorage_host.tls.certificate import Certificate
from moorage_host.tls.identities import service_identity
from moorage_host.tls.security import Security

LONGEST_CALL = 30.0
"""Seconds that calls which are no binds have to end on a connection that was replaced."""


class BinderConnection:
    """A channel to the binder, with what is called through it.

    Attributes:
        target: Where the binder is.
        stub: For single calls.
        stream: For binds.
    """

    def __init__(self, target: str, security: Security) -> None:
        """Connect to the binder at *target*."""
        self.target = target
        self._security = security
        self._use(self._open())

    async def follow_certificate(self) -> None:
        """Replace the connection whenever this process's certificate is renewed.

        The former one is used until the new one is ready, and stays until all is answered.
        """
        certificate = self._security.certificate
        async with asyncio.TaskGroup() as group:
            while True:
                await self._security.renewed(certificate)
                certificate, channel = self._security.certificate, self._open()
                if await self._is_ready(channel, certificate):
                    group.create_task(_end(self._channel, self.stream))
                    self._use(channel)
                else:
                    await channel.close()

    async def close(self) -> None:
        """Hang up."""
        await self.stream.close()
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
        return connect(self.target, security=self._security, identity=identity)

    def _use(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self.stub = BinderServiceStub(channel)
        self.stream = BindStream(channel)


async def _end(channel: grpc.aio.Channel, stream: BindStream) -> None:
    await stream.answered()
    await stream.close()
    await channel.close(LONGEST_CALL)
