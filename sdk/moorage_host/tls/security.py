"""How the connections of a process are secured; each process makes this once, at its start.

With `--tls` everything that listens or connects uses its certificates. Without, only loopback
addresses and Unix sockets are allowed, unless `--insecure` allows plain text everywhere. HTTP
servers and clients have an `ssl.SSLContext`; gRPC has its own credentials.
"""

import asyncio
import ipaddress
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import structlog

from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import Certificate, Certificates

log = structlog.get_logger()

PLAIN_TEXT_WARNING = (
    "plain text (--insecure): whoever reaches a port of this process can read everything and bind "
    "any pod"
)


class TlsSettings(Protocol):
    """The settings about it, which every process with a port has."""

    @property
    def tls(self) -> Path | None: ...  # noqa: D102
    @property
    def tls_reload_interval(self) -> float: ...  # noqa: D102
    @property
    def insecure(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What secures connections.

    Attributes:
        certificates: Those of `--tls`; None in plain text.
        insecure: Whether plain text is allowed beyond loopback.
    """

    certificates: Certificates | None = None
    insecure: bool = False

    def require(self, action: str, host: str) -> None:
        """Refuse plain text on an address that others can reach.

        Args:
            action: What is about to be done, such as "listen on 0.0.0.0:50051".
            host: A host name, an address, or the path of a Unix socket after "unix:".

        Raises:
            ConfigurationError: Neither `--tls` nor `--insecure` is given, and others can reach it.
        """
        if not (self.certificates or self.insecure or is_local(host)):
            raise ConfigurationError(
                f"cannot {action} in plain text: give --tls DIR with this process's certificate "
                "(see docs/explanation/security.md), or a loopback address, or --insecure if "
                "everybody on the network may read all and bind any pod"
            )

    @property
    def certificate(self) -> Certificate | None:
        """The certificate that new connections use; None in plain text."""
        return self.certificates.current if self.certificates else None

    async def renewed(self, since: Certificate | None) -> None:
        """Wait until new connections use another certificate than *since*."""
        if self.certificates is None or since is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self.certificates.renewed(since)

    def note(self) -> str | None:
        """Return what `/readyz` shows about it."""
        if self.certificates is not None:
            return self.certificates.note()
        return PLAIN_TEXT_WARNING if self.insecure else None


LOOPBACK = Security()
"""Plain text, on loopback only: what processes without either option have."""


@asynccontextmanager
async def securing(settings: TlsSettings) -> AsyncIterator[Security]:
    """Give what secures the connections of a process; certificates are reloaded meanwhile.

    Raises:
        ConfigurationError: The files cannot be used, or the options contradict each other.
    """
    if settings.tls is None:
        if settings.insecure:
            log.warning("Connections are not secured", problem=PLAIN_TEXT_WARNING)
        yield Security(insecure=settings.insecure)
        return
    if settings.insecure:
        raise ConfigurationError("--tls and --insecure contradict each other; leave one out")
    certificates = Certificates(settings.tls)
    reloading = asyncio.create_task(certificates.run(settings.tls_reload_interval))
    try:
        yield Security(certificates=certificates)
    finally:
        reloading.cancel()


def is_local(host: str) -> bool:
    """Whether only this machine can reach a host: loopback, or a Unix socket."""
    if host.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


ClientCertificate = Literal["required", "optional"]


def server_context(
    certificates: Certificates, client_certificate: ClientCertificate
) -> ssl.SSLContext:
    """Return the context of a server: each new connection uses the certificate then active.

    For `loop.create_server` and what stands on it. TLS 1.3 only. Sessions are not resumed, so that
    every connection shows that its client's certificate is still believed.
    """
    context = _Reloading(ssl.PROTOCOL_TLS_SERVER)
    made: dict[str, tuple[Certificate, ssl.SSLContext]] = {}

    def current() -> ssl.SSLContext:
        certificate = certificates.current
        if not made or made["context"][0] is not certificate:
            made["context"] = certificate, _server_context(certificate, client_certificate)
        return made["context"][1]

    context.current = current
    current()  # what is wrong shows when the server starts
    return context


def client_context(certificate: Certificate) -> ssl.SSLContext:
    """Return the context of a client; the caller names the server that it expects.

    As aiohttp does with `server_hostname="moorage-gateway"`.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, certificate)
    return context


class _Reloading(ssl.SSLContext):
    """Stands for the newest of many contexts. One alone could not forget an authority."""

    current: Callable[[], ssl.SSLContext]

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        return self.current().wrap_bio(*args, **options)

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        return self.current().wrap_socket(*args, **options)


def _server_context(certificate: Certificate, client: ClientCertificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED if client == "required" else ssl.CERT_OPTIONAL
    context.num_tickets = 0
    _load(context, certificate)
    return context


def _load(context: ssl.SSLContext, certificate: Certificate) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as gRPC: any given authority will do
    context.load_verify_locations(cadata=certificate.authorities.decode())
    # OpenSSL reads them from a file only. Those of the folder may have been replaced meanwhile.
    file = _unnamed_file(certificate.chain + b"\n" + certificate.key)
    try:
        context.load_cert_chain(f"/dev/fd/{file}")
    finally:
        os.close(file)


def _unnamed_file(content: bytes) -> int:
    """Return a file that nobody else can open, not on a disk where the system has such."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("moorage-tls")
    else:
        file, name = tempfile.mkstemp()
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108 - mkstemp gives a string
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file
