"""Makes a certificate authority, and certificates that it signs; everything is P-256."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

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

CLOCK_SKEW = timedelta(minutes=5)
"""Certificates are valid a little before they are made: clocks differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


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
