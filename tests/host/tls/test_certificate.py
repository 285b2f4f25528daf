import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import read_certificate
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
