import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moorage_host.tls.certificate import Certificates, read_certificate
from moorage_host.tls.identities import http_identities
from moorage_host.tls.security import ClientCertificate, client_context, server_context
from tools.inprocess.certificates import authority, write_folder

GOOD, NEXT = authority("first"), authority("second")
NOBODY = "nobody"


@asynccontextmanager
async def server(certificates: Certificates, client: ClientCertificate) -> AsyncIterator[int]:
    """Answer each connection with the names that its caller has proven."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        names = http_identities(writer.get_extra_info("peercert"))
        writer.write(",".join(sorted(names)).encode() or NOBODY.encode())
        await writer.drain()
        writer.close()

    context = server_context(certificates, client)
    listening = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


async def ask(port: int, context: ssl.SSLContext, name: str = "moorage-gateway") -> str:
    """Return the server's answer, empty if it hangs up: with TLS 1.3 it looks at the certificate
    after the client is done."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=name
    )
    try:
        return (await reader.read()).decode()
    except (ssl.SSLError, ConnectionError):
        return ""
    finally:
        writer.close()


def without_certificate() -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=GOOD.certificate.decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def context_of(folder: Path) -> ssl.SSLContext:
    return client_context(read_certificate(folder))


async def test_a_server_knows_its_callers_by_name(tmp_path: Path) -> None:
    gateway = Certificates(write_folder(tmp_path / "gateway", GOOD, "moorage-gateway"))
    operator = context_of(write_folder(tmp_path / "operator", GOOD, "moorage-operator"))
    stranger = write_folder(tmp_path / "other", NEXT, "moorage-operator")
    (stranger / "ca.crt").write_bytes(GOOD.certificate + NEXT.certificate)
    async with server(gateway, "required") as port:
        assert await ask(port, operator) == "moorage-operator"
        with pytest.raises(ssl.SSLCertVerificationError, match="moorage-binder"):
            await ask(port, operator, "moorage-binder")
        for refused in (without_certificate(), context_of(stranger)):
            assert await ask(port, refused) == ""
    async with server(gateway, "optional") as port:
        assert await ask(port, operator) == "moorage-operator"
        assert await ask(port, without_certificate()) == NOBODY
        assert await ask(port, context_of(stranger)) == ""


async def test_new_connections_use_replaced_files_and_a_removed_authority_is_refused(
    tmp_path: Path,
) -> None:
    both = GOOD.certificate + NEXT.certificate
    folder, old, new = (tmp_path / name for name in ("gateway", "old", "new"))
    write_folder(folder, GOOD, "moorage-gateway")
    write_folder(old, GOOD, "moorage-operator", believed=both)
    write_folder(new, NEXT, "moorage-operator", believed=both)
    certificates = Certificates(folder)
    async with server(certificates, "required") as port:
        assert await ask(port, context_of(new)) == ""
        write_folder(folder, NEXT, "moorage-gateway", believed=both)
        certificates.reload()
        assert await ask(port, context_of(old)) == "moorage-operator"
        assert await ask(port, context_of(new)) == "moorage-operator"
        write_folder(folder, NEXT, "moorage-gateway")
        certificates.reload()
        assert await ask(port, context_of(new)) == "moorage-operator"
        assert await ask(port, context_of(old)) == ""
