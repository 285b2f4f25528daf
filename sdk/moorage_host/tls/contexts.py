"""`ssl.SSLContext` for HTTP servers and clients; gRPC has its own credentials."""

import os
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from moorage_host.tls.certificate import Certificate, Certificates

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
