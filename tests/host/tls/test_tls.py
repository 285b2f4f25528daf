"""Certificates: how they are read, checked and replaced, and what goes without them."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from prometheus_client import REGISTRY

from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import Certificates, read_certificate
from moorage_host.tls.identities import http_identities
from moorage_host.tls.security import (
    LOOPBACK,
    ClientCertificate,
    Security,
    client_context,
    securing,
    server_context,
)
from tools.inprocess.certificates import DAY, authority, write_folder

GOOD = authority()


def test_a_good_folder_says_who_the_process_is_and_until_when(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, GOOD, "moorage-filter", "localhost", "127.0.0.1", life=9 * DAY)
    found = read_certificate(folder)
    assert found.names == ("moorage-filter", "localhost")
    assert timedelta(days=8) < found.not_after - datetime.now(UTC) < timedelta(days=10)
    assert found.share_left(datetime.now(UTC)) > 0.99
    assert "PRIVATE KEY" not in repr(found)


def test_several_authorities_may_be_believed_and_one_must_have_signed(tmp_path: Path) -> None:
    other = authority("another").certificate
    write_folder(tmp_path, GOOD, "moorage-filter", believed=other + GOOD.certificate)
    assert read_certificate(tmp_path).names == ("moorage-filter",)


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def write(name: str, content: bytes) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return do


def encrypt_key(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    hidden = serialization.BestAvailableEncryption(b"word")
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden
    (folder / "tls.key").write_bytes(key.private_bytes(*form))


def without_extensions(usage: x509.ExtendedKeyUsage | None) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        key = serialization.load_pem_private_key(GOOD.key, None)
        own = serialization.load_pem_private_key((folder / "tls.key").read_bytes(), None)
        name = x509.load_pem_x509_certificate(GOOD.certificate).subject
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            issuer_name=name,
            subject_name=name,
            public_key=own.public_key(),  # type: ignore[arg-type]
            serial_number=5,
            not_valid_before=now - DAY,
            not_valid_after=now + DAY,
        )
        if usage:
            builder = builder.add_extension(usage, critical=False)
        signed = builder.sign(key, hashes.SHA256())  # type: ignore[arg-type]
        (folder / "tls.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    return do


SERVER_ONLY = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove("tls.crt"), r"cannot read {}/tls\.crt: no such file .*moorage certs"),
        (remove("tls.key"), r"cannot read {}/tls\.key: no such file"),
        (remove("ca.crt"), r"cannot read {}/ca\.crt: no such file"),
        (write("tls.crt", b"nonsense"), r"{}/tls\.crt: it holds no certificate in PEM"),
        (write("ca.crt", b""), r"{}/ca\.crt: it holds no certificate in PEM"),
        (write("tls.key", b"nonsense"), r"{}/tls\.key: it holds no private key in PEM"),
        (write("tls.key", GOOD.key), r"{}/tls\.key: the key does not match .*{}/tls\.crt"),
        (encrypt_key, r"{}/tls\.key: the key is encrypted"),
        (
            write("ca.crt", authority("the authority").certificate),
            r'{}/tls\.crt: no authority in {}/ca\.crt has signed it; .* "CN=the authority"',
        ),
        (without_extensions(None), r"{}/tls\.crt: it has no DNS name .* such as moorage-gateway"),
        (without_extensions(SERVER_ONLY), r"{}/tls\.crt: .*usage lacks client auth; issue it with"),
    ],
)
def test_a_bad_folder_is_refused_with_the_file_and_the_next_step(
    tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    folder = write_folder(tmp_path, GOOD, "moorage-filter")
    change(folder)
    with pytest.raises(ConfigurationError, match=message.replace("{}", re.escape(str(folder)))):
        read_certificate(folder)


def test_a_certificate_that_is_not_valid_now_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path / "old", GOOD, "moorage-filter", begin=-2 * DAY)
    with pytest.raises(ConfigurationError, match=r"it expired at 20.*Z; renew it"):
        read_certificate(tmp_path / "old")
    write_folder(tmp_path / "new", GOOD, "moorage-filter", begin=DAY)
    with pytest.raises(ConfigurationError, match=r"it is not valid before 20.*Z; check the clock"):
        read_certificate(tmp_path / "new")


BOTH, NEXT = authority("first"), authority("second")
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
    context = ssl.create_default_context(cadata=BOTH.certificate.decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def context_of(folder: Path) -> ssl.SSLContext:
    return client_context(read_certificate(folder))


async def test_a_server_knows_its_callers_by_name(tmp_path: Path) -> None:
    gateway = Certificates(write_folder(tmp_path / "gateway", BOTH, "moorage-gateway"))
    operator = context_of(write_folder(tmp_path / "operator", BOTH, "moorage-operator"))
    stranger = write_folder(tmp_path / "other", NEXT, "moorage-operator")
    (stranger / "ca.crt").write_bytes(BOTH.certificate + NEXT.certificate)
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
    both = BOTH.certificate + NEXT.certificate
    folder, old, new = (tmp_path / name for name in ("gateway", "old", "new"))
    write_folder(folder, BOTH, "moorage-gateway")
    write_folder(old, BOTH, "moorage-operator", believed=both)
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


def expiry(identity: str) -> float | None:
    name = "moorage_tls_certificate_expiry_timestamp_seconds"
    return REGISTRY.get_sample_value(name, {"identity": identity})


async def test_replaced_files_come_into_force_and_the_gauge_shows_their_end(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, GOOD, "moorage-filter")
    certificates = Certificates(folder)
    first = certificates.current
    assert expiry("moorage-filter") == first.not_after.timestamp()
    renewed = asyncio.create_task(certificates.renewed(first))
    certificates.reload()
    assert certificates.current is first
    write_folder(tmp_path, GOOD, "moorage-filter", life=7 * DAY)
    certificates.reload()
    assert await renewed is certificates.current is not first
    assert expiry("moorage-filter") == certificates.current.not_after.timestamp()
    assert certificates.note() is None


async def test_files_that_cannot_be_used_change_nothing_and_are_noted(tmp_path: Path) -> None:
    certificates = Certificates(write_folder(tmp_path, GOOD, "moorage-filter"))
    first, key = certificates.current, (tmp_path / "tls.key").read_bytes()
    (tmp_path / "tls.key").write_bytes(GOOD.key)
    certificates.reload()
    assert certificates.note() is None  # it may be being replaced
    certificates.reload()
    assert certificates.current is first
    assert "stays active: cannot use" in (certificates.note() or "")
    assert "does not match" in (certificates.note() or "")
    (tmp_path / "tls.key").write_bytes(key)
    certificates.reload()
    assert certificates.note() is None


async def test_a_renewal_that_is_overdue_is_noted(tmp_path: Path) -> None:
    write_folder(tmp_path, GOOD, "moorage-filter", begin=-DAY, life=timedelta(days=1.4))
    assert "less than a third of its life is left" in (Certificates(tmp_path).note() or "")
    write_folder(tmp_path, GOOD, "moorage-filter", begin=-DAY, life=timedelta(days=1.8))
    assert Certificates(tmp_path).note() is None


@dataclass
class Settings:
    tls: Path | None = None
    tls_reload_interval: float = 10.0
    insecure: bool = False


def test_plain_text_stays_on_this_machine() -> None:
    for host in ("127.0.0.1", "127.0.3.4", "::1", "[::1]", "localhost", "unix:/x"):
        LOOPBACK.require(f"listen on {host}", host)


async def test_plain_text_elsewhere_needs_an_option(tmp_path: Path) -> None:
    async with securing(Settings(tls=write_folder(tmp_path, authority(), "me"))) as security:
        for host in ("0.0.0.0", "::", "10.0.0.1", "filter", "localhost.example", ""):
            with pytest.raises(
                ConfigurationError, match=r"^cannot listen on x in plain text: .* -"
            ):
                LOOPBACK.require("listen on x", host)
            Security(insecure=True).require("listen on x", host)
            security.require("listen on x", host)


async def test_insecure_is_noted_and_excludes_certificates(tmp_path: Path) -> None:
    async with securing(Settings(insecure=True)) as security:
        assert "whoever reaches a port" in (security.note() or "")
    async with securing(Settings()) as security:
        assert security == LOOPBACK
        assert security.note() is None
    with pytest.raises(ConfigurationError, match="contradict"):
        async with securing(Settings(tls=tmp_path, insecure=True)):
            pass
