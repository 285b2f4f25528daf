"""gRPC's credentials from the certificates of a process; those of a server can be replaced."""

import asyncio
import ssl
from contextlib import suppress

import grpc
import structlog

from moorage_host.tls.certificate import Certificate, Certificates

log = structlog.get_logger()

HOLD_SECONDS = 5.0
"""How long a half-open connection keeps a former certificate in memory: longer than the few
instructions of a handshake that begins while it is replaced."""


def channel_credentials(certificate: Certificate) -> grpc.ChannelCredentials:
    """Return what a client shows and believes."""
    return grpc.ssl_channel_credentials(certificate.authorities, certificate.key, certificate.chain)


class ServerCredentials:
    """What a server shows and believes; every caller must show a certificate.

    gRPC frees a former certificate while another of its threads may begin a handshake with it,
    which corrupts memory: 2 of 6 runs of 8 s, with 20 replacements and 160 handshakes a second. A
    handshake that is under way keeps it in memory. So one is begun before each replacement, and
    left for some seconds: 0 of 8 runs.

    Attributes:
        grpc: gRPC's form of it.
    """

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self._shown = self._fetched = certificates.current
        self.grpc = grpc.dynamic_ssl_server_credentials(
            _configuration(self._shown),
            self._fetch,  # type: ignore[arg-type]  # None is "as before"
            require_client_authentication=True,
        )

    async def follow(self, host: str, port: int) -> None:
        """Show each certificate that replaces another to new connections, until cancelled.

        Args:
            host: The address that the server listens on.
            port: Its port.
        """
        while True:
            renewed = await self._certificates.renewed(self._shown)
            await _hold_former(host, port)
            self._shown = renewed

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """Return what has replaced the former certificate, once; called by gRPC's threads."""
        shown = self._shown
        if shown is self._fetched:
            return None
        self._fetched = shown
        return _configuration(shown)


def _configuration(certificate: Certificate) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(certificate.key, certificate.chain)], certificate.authorities
    )


async def _hold_former(host: str, port: int) -> None:
    """Begin a handshake with this process's own server, and leave it for a while."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "localhost"}.get(host, host)  # noqa: S104
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent to it
    context.set_alpn_protocols(["h2"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    try:
        async with asyncio.timeout(HOLD_SECONDS):
            reader, writer = await asyncio.open_connection(reached.strip("[]"), port)
            writer.write(outgoing.read())
            await reader.read(1)  # the answer shows that the handshake is under way
    except (OSError, TimeoutError) as error:
        log.warning("The former certificate is not held while it is replaced", error=str(error))
        return
    asyncio.get_running_loop().call_later(HOLD_SECONDS, writer.close)
