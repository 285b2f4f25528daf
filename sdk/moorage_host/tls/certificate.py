"""Checks a folder with tls.crt, tls.key and ca.crt, as Kubernetes has in Secrets; keeps it current.

Whoever renews a certificate just replaces the files. Files that cannot be used are reported, and
the former certificate stays active.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID
from prometheus_client import Counter, Gauge

from moorage.errors import ConfigurationError

CHAIN, KEY, AUTHORITIES = "tls.crt", "tls.key", "ca.crt"

_USAGES = {
    ExtendedKeyUsageOID.SERVER_AUTH: "server auth",
    ExtendedKeyUsageOID.CLIENT_AUTH: "client auth",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate with its key, and the authorities whose certificates are believed.

    Attributes:
        chain: The certificate and what is between it and its authority, in PEM.
        key: Its private key, in PEM.
        authorities: The certificates of the authorities, in PEM.
        names: Its DNS names (subject alternative names), in order.
        not_before: When it begins to be valid.
        not_after: When it expires.
    """

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    authorities: bytes = field(repr=False)
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime

    def share_left(self, now: datetime) -> float:
        """Return which part of its life is left; below 0 once it has expired."""
        return (self.not_after - now) / (self.not_after - self.not_before)


def read_certificate(folder: Path, now: datetime | None = None) -> Certificate:
    """Read and check the files of *folder*.

    Raises:
        ConfigurationError: A file is missing or malformed, the key is another certificate's, the
            certificate is not valid now, has no DNS name, may not be used on both sides of a
            connection, or no authority of the folder has signed it.
    """
    chain, key, authorities = (_read(folder / name) for name in (CHAIN, KEY, AUTHORITIES))
    certificates = _certificates(folder / CHAIN, chain)
    roots = _certificates(folder / AUTHORITIES, authorities)
    leaf = certificates[0]
    _check_key(folder, leaf, key)
    _check_time(folder, leaf, now or datetime.now(UTC))
    _check_usage(folder, leaf)
    if not is_signed(certificates, roots):
        raise _problem(
            folder / CHAIN,
            f"no authority in {folder / AUTHORITIES} has signed it; it names as its issuer "
            f'"{leaf.issuer.rfc4514_string()}"',
        )
    return Certificate(
        chain=chain,
        key=key,
        authorities=authorities,
        names=_names(folder, leaf),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}; --tls is a folder with "
            f"{CHAIN}, {KEY} and {AUTHORITIES}, such as `moorage certs` writes"
        ) from error


def _certificates(path: Path, text: bytes) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text)
    except ValueError as error:
        raise _problem(path, "it holds no certificate in PEM, or a damaged one") from error


def _check_key(folder: Path, leaf: x509.Certificate, text: bytes) -> None:
    path = folder / KEY
    try:
        key = load_pem_private_key(text, None)
    except TypeError as error:
        raise _problem(path, "the key is encrypted; write it without a password") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _problem(path, "it holds no private key in PEM") from error
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*form) != leaf.public_key().public_bytes(*form):
        raise _problem(path, f"the key does not match the certificate in {folder / CHAIN}")


def _check_time(folder: Path, leaf: x509.Certificate, now: datetime) -> None:
    if now > leaf.not_valid_after_utc:
        raise _problem(folder / CHAIN, f"it expired at {leaf.not_valid_after_utc:%FT%TZ}; renew it")
    if now < leaf.not_valid_before_utc:
        raise _problem(
            folder / CHAIN,
            f"it is not valid before {leaf.not_valid_before_utc:%FT%TZ}; check the clock",
        )


def _check_usage(folder: Path, leaf: x509.Certificate) -> None:
    if missing := missing_usages(leaf):
        raise _problem(
            folder / CHAIN,
            f"its extended key usage lacks {' and '.join(missing)}; issue it with both server auth "
            "and client auth",
        )


def missing_usages(leaf: x509.Certificate) -> Sequence[str]:
    """Return the usages that a process needs and the certificate does not allow.

    Without the extension a certificate may be used for everything.
    """
    try:
        allowed = set(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return ()
    return [name for usage, name in _USAGES.items() if usage not in allowed]


def _names(folder: Path, leaf: x509.Certificate) -> tuple[str, ...]:
    try:
        extension = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = tuple(extension.value.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        names = ()
    if not names:
        raise _problem(
            folder / CHAIN,
            "it has no DNS name in its subject alternative names; they say who the process is, "
            "such as moorage-gateway",
        )
    return names


def is_signed(chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate]) -> bool:
    """Whether a root, or a certificate of the chain that one has signed, has signed the first."""
    current = chain[0]
    for _ in chain:
        if current in roots or any(_has_signed(root, current) for root in roots):
            return True
        above = next((each for each in chain[1:] if _has_signed(each, current)), None)
        if above is None:
            return False
        current = above
    return False


def _has_signed(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _problem(path: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(f"cannot use {path}: {problem}")


log = structlog.get_logger()

SHARE_LEFT = 1 / 3
"""Renewal is due at two thirds of a certificate's life: with less than this left it has failed."""

EXPIRY = Gauge(
    "moorage_tls_certificate_expiry_timestamp_seconds",
    "When this process's certificate expires (Unix time); identity is its first DNS name. Absent "
    "in plain text.",
    ("identity",),
)

START = Gauge(
    "moorage_tls_certificate_start_timestamp_seconds",
    "When this process's certificate became valid (Unix time). Absent in plain text.",
    ("identity",),
)

RELOADS = Counter(
    "moorage_tls_reloads_total",
    "New certificates that were reloaded, or failed.",
    ("outcome",),
)


class Certificates:
    """The certificate of a folder.

    Attributes:
        current: The certificate that is active.
        problem: Why what the folder holds now is not active; empty if it is.
    """

    def __init__(self, folder: Path) -> None:
        """Read *folder*; raises ConfigurationError."""
        self.problem = ""
        self._folder = folder
        self._failed = ""
        self._changed = asyncio.Event()
        self._take(read_certificate(folder))

    def note(self) -> str | None:
        """Return what `/readyz` shows: a failed reload, or a renewal that is overdue."""
        left = self.current.share_left(datetime.now(UTC))
        until = f"{self.current.not_after:%FT%TZ}"
        due = ""
        if left < 0:
            due = f"the certificate in {self._folder} expired at {until}; renew it"
        elif left < SHARE_LEFT:
            due = (
                f"the certificate in {self._folder} expires at {until} and less than a third of "
                "its life is left; renew it"
            )
        failed = self.problem and f"the certificate before stays active: {self.problem}"
        return "; ".join(filter(None, (failed, due))) or None

    async def renewed(self, since: Certificate) -> Certificate:
        """Return the active certificate once it is another one than *since*."""
        while self.current is since:
            await self._changed.wait()
        return self.current

    async def run(self, interval: float) -> None:
        """Look for another certificate every *interval* seconds, until cancelled."""
        while True:
            await asyncio.sleep(interval)
            self.reload()

    def reload(self) -> None:
        """Look for another certificate now.

        Files that do not fit together may be being replaced: a problem counts when it is met twice.
        """
        try:
            found = read_certificate(self._folder)
        except ConfigurationError as error:
            self._fail(str(error))
            return
        self._failed = self.problem = ""
        if _content(found) != _content(self.current):
            self._take(found)
            RELOADS.labels("reloaded").inc()
            log.info("The certificate is reloaded", names=found.names, expires=found.not_after)

    def _take(self, certificate: Certificate) -> None:
        self.current = certificate
        for gauge, time in ((START, certificate.not_before), (EXPIRY, certificate.not_after)):
            gauge.clear()
            gauge.labels(certificate.names[0]).set(time.timestamp())
        self._changed.set()
        self._changed = asyncio.Event()

    def _fail(self, problem: str) -> None:
        if problem == self._failed and problem != self.problem:
            self.problem = problem
            RELOADS.labels("failed").inc()
            log.warning("The certificate is not reloaded", problem=problem)
        self._failed = problem


def _content(certificate: Certificate) -> tuple[bytes, bytes, bytes]:
    return certificate.chain, certificate.key, certificate.authorities
