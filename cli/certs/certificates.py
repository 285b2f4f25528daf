"""Keeps a folder of certificates: `ca/` for the authority, and one folder for each identity.

Each identity's folder is what `--tls` takes, or a Secret. A second run renews what is due and
nothing else. All keys are of P-256.
"""

import base64
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import yaml
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
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

SERVICES = ("gateway", "filter", "scorer", "binder", "annotator", "shadow-filter", "shadow-scorer")
CLIENTS = {"scheduler": SCHEDULER, "operator": OPERATOR, "metrics": METRICS}

HERE = ("localhost", "127.0.0.1", "::1")
"""The names of a service on this machine."""

IDENTITIES = (*SERVICES, *CLIENTS)
"""The folders of certificates."""

AUTHORITY_LIFE, LIFE = timedelta(days=3650), timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def identities(namespace: str = "moorage") -> dict[str, tuple[str, ...]]:
    """Return each identity's folder, and the names in its certificate."""
    services = {
        each: (
            service_identity(each),
            each,
            f"{each}.{namespace}",
            f"{each}.{namespace}.svc",
            *HERE,
        )
        for each in SERVICES
    }
    return services | {folder: (name,) for folder, name in CLIENTS.items()}


def keep_certificates(
    root: Path, *, namespace: str = "moorage", life: timedelta = LIFE
) -> dict[str, bool]:
    """Make what is missing in *root*, and renew what is due; say which were written.

    Args:
        root: The folder.
        namespace: Of the services, for their names in a cluster.
        life: For how long certificates are valid.

    Raises:
        ConfigurationError: A file cannot be read or written.
    """
    now = datetime.now(UTC)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority, written = _authority(root / "ca", now)
        done = {"ca": written}
        for folder, names in identities(namespace).items():
            done[folder] = _is_due(root / folder, authority, names, now)
            if done[folder]:
                issued = issue(authority, names, now, life)
                files = {KEY: issued.key, CHAIN: issued.certificate}
                _write(root / folder, {**files, AUTHORITIES: authority.certificate})
    except OSError as error:
        raise ConfigurationError(
            f"cannot write certificates in {root}: {(error.strerror or str(error)).lower()}"
        ) from error
    return done


def _authority(folder: Path, now: datetime) -> tuple[Issued, bool]:
    certificate, key = folder / AUTHORITIES, folder / "ca.key"
    if certificate.exists() and key.exists():
        found = Issued(certificate=certificate.read_bytes(), key=key.read_bytes())
        problem = "its key is another one's"
        try:
            public = x509.load_pem_x509_certificate(found.certificate).public_key()
            if load_pem_private_key(found.key, None).public_key() == public:
                issue(found, HERE, now, LIFE)
                return found, False
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            problem = str(error)
        raise ConfigurationError(
            f"cannot use the authority in {folder}: {problem}; without the folder another is made"
        )
    authority = new_authority(now, AUTHORITY_LIFE)
    _write(folder, {"ca.key": authority.key, AUTHORITIES: authority.certificate})
    return authority, True


def _is_due(folder: Path, authority: Issued, names: Sequence[str], now: datetime) -> bool:
    """Whether a certificate is missing, of another authority, without a name, or near its end."""
    try:
        found = read_certificate(folder, now)
    except ConfigurationError:
        return True
    is_ours = found.authorities == authority.certificate
    wanted = set(names) - set(HERE)
    return not is_ours or not wanted <= set(found.names) or found.share_left(now) < SHARE_LEFT


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Replace each file in one step; nobody else may read it, before or after."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, content in files.items():
        temporary = folder / f".{name}.new"
        temporary.unlink(missing_ok=True)
        temporary.touch(mode=0o600, exist_ok=False)
        try:
            temporary.write_bytes(content)
            temporary.replace(folder / name)
        except OSError:
            temporary.unlink()
            raise


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
    return _certificate(name, None, now, valid)


def issue(authority: Issued, names: Sequence[str], now: datetime, valid: timedelta) -> Issued:
    """Make a certificate for both sides of a connection.

    Args:
        authority: Who signs it.
        names: DNS names and IP addresses; the first says who it is.
        now: From when on it is valid.
        valid: For how long.
    """
    sides = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    known_as = x509.SubjectAlternativeName([_general_name(name) for name in names])
    return _certificate(names[0], authority, now, valid, known_as, x509.ExtendedKeyUsage(sides))


def _certificate(
    name: str,
    authority: Issued | None,
    now: datetime,
    valid: timedelta,
    *extensions: x509.ExtensionType,
) -> Issued:
    """Make a certificate that an authority signs; without one, that of an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    own_name = issuer_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    signer, is_authority = key, authority is None
    if authority:
        issuer = x509.load_pem_x509_certificate(authority.certificate)
        issuer_name = issuer.subject
        signer = cast("ec.EllipticCurvePrivateKey", load_pem_private_key(authority.key, None))
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    constraints = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(own_name)
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + valid)
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
    )
    for each in (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), by, *extensions):
        builder = builder.add_extension(each, critical=False)
    signed = builder.sign(signer, hashes.SHA256())
    form = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    return Issued(certificate=signed.public_bytes(Encoding.PEM), key=key.private_bytes(*form))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
