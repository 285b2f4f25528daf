"""Keeps a folder of certificates: `ca/` for the authority, and one folder for each identity.

Each identity's folder is what `--tls` takes, or a Secret. A second run renews what is due and
nothing else. All keys are of P-256.
"""

import base64
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import AUTHORITIES, CHAIN, KEY, SHARE_LEFT, read_certificate
from moorage_host.tls.identities import METRICS, OPERATOR, SCHEDULER, service_identity

SERVICES = ("gateway", "filter", "scorer", "binder", "annotator")
CLIENTS = {"scheduler": SCHEDULER, "operator": OPERATOR, "metrics": METRICS}

IDENTITIES = (*SERVICES, *CLIENTS)
"""The folders of certificates."""

AUTHORITY_LIFE, LIFE = timedelta(days=3650), timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def identities(
    namespace: str = "moorage", further_names: Sequence[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Return each identity's folder, and the names in its certificate."""
    services = {each: (*_service_names(each, namespace), *further_names) for each in SERVICES}
    return services | {folder: (name,) for folder, name in CLIENTS.items()}


def keep_certificates(
    root: Path,
    *,
    namespace: str = "moorage",
    further_names: Sequence[str] = (),
    life: timedelta = LIFE,
    replace_authority: bool = False,
) -> dict[str, bool]:
    """Make what is missing in *root*, and renew what is due; say which were written.

    Args:
        root: The folder.
        namespace: Of the services, for their names in a cluster.
        further_names: DNS names and addresses that the services have as well.
        life: For how long certificates are valid.
        replace_authority: Make another authority; certificates of the former one are replaced.

    Raises:
        ConfigurationError: A file cannot be read or written.
    """
    now = datetime.now(UTC)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority, written = _authority(root / "ca", now, replace_authority)
        done = {"ca": written}
        for folder, names in identities(namespace, further_names).items():
            done[folder] = _is_due(root / folder, authority, names, now)
            if done[folder]:
                issued = issue(authority, names, now, life)
                _write(root / folder, issued, authority.certificate)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write certificates in {root}: {(error.strerror or str(error)).lower()}"
        ) from error
    return done


def _write_file(path: Path, content: bytes) -> None:
    """Replace a file in one step; nobody else may read it, before or after."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600, exist_ok=False)
    temporary.write_bytes(content)
    temporary.replace(path)


def _authority(folder: Path, now: datetime, replace: bool) -> tuple[Issued, bool]:
    certificate, key = folder / AUTHORITIES, folder / "ca.key"
    if not replace and certificate.exists() and key.exists():
        return Issued(certificate=certificate.read_bytes(), key=key.read_bytes()), False
    authority = new_authority(now, AUTHORITY_LIFE)
    folder.mkdir(mode=0o700, exist_ok=True)
    _write_file(key, authority.key)
    _write_file(certificate, authority.certificate)
    return authority, True


def _is_due(folder: Path, authority: Issued, names: Sequence[str], now: datetime) -> bool:
    """Whether a certificate is missing, of another authority, without a name, or near its end."""
    try:
        found = read_certificate(folder, now)
    except ConfigurationError:
        return True
    is_ours = found.authorities == authority.certificate
    wanted = set(_dns_names(names))
    return not is_ours or not wanted <= set(found.names) or found.share_left(now) < SHARE_LEFT


def _write(folder: Path, issued: Issued, authority: bytes) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    _write_file(folder / KEY, issued.key)
    _write_file(folder / CHAIN, issued.certificate)
    _write_file(folder / AUTHORITIES, authority)


def _service_names(name: str, namespace: str) -> tuple[str, ...]:
    inside = (name, f"{name}.{namespace}", f"{name}.{namespace}.svc")
    return (service_identity(name), *inside, "localhost", "127.0.0.1", "::1")


def _dns_names(names: Sequence[str]) -> Sequence[str]:
    return [name for name in names if not name.replace(".", "").isdecimal() and ":" not in name]


def secrets(root: Path, namespace: str, identities: Iterable[str] = IDENTITIES) -> str:
    """Return a Secret of type kubernetes.io/tls for each identity, in YAML."""
    return yaml.safe_dump_all(_secret(root, each, namespace) for each in identities)


def _secret(root: Path, identity: str, namespace: str) -> dict[str, Any]:
    data = {
        name: base64.b64encode((root / identity / name).read_bytes()).decode()
        for name in (CHAIN, KEY, AUTHORITIES)
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{identity}-tls",  # as the process mounts it
            "namespace": namespace,
            "labels": {"app.kubernetes.io/part-of": "moorage"},
        },
        "type": "kubernetes.io/tls",
        "data": data,
    }


# ---- the certificates

CLOCK_SKEW = timedelta(minutes=5)
"""Certificates are valid a little before they are made: clocks differ."""


def new_authority(now: datetime, valid: timedelta, name: str = "Moorage development CA") -> Issued:
    """Make a certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    own_name = _name(name)
    builder = _builder(own_name, own_name, key.public_key(), now, now + valid)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(authority=True), critical=True)
    return _issued(builder, key, key)


def issue(authority: Issued, names: Sequence[str], now: datetime, valid: timedelta) -> Issued:
    """Make a certificate for both sides of a connection.

    Args:
        authority: Who signs it.
        names: DNS names and IP addresses; the first says who it is.
        now: From when on it is valid.
        valid: For how long.
    """
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = load_pem_private_key(authority.key, None)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_name(names[0]), issuer.subject, key.public_key(), now, now + valid)
    extensions: Sequence[tuple[x509.ExtensionType, bool]] = (
        (x509.SubjectAlternativeName([_general_name(name) for name in names]), False),
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_key_usage(authority=False), True),
        (
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            False,
        ),
        (
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),  # type: ignore[arg-type]
            False,
        ),
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return _issued(builder, key, issuer_key)


def _builder(
    name: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    begin: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _issued(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: object
) -> Issued:
    certificate = builder.sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    form = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    return Issued(certificate=certificate.public_bytes(Encoding.PEM), key=key.private_bytes(*form))


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
