"""Keeps the certificate of a folder current: whoever renews it just replaces the files.

Files that cannot be used are reported, and the former certificate stays active.
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import structlog
from prometheus_client import Counter, Gauge

from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import Certificate, read_certificate

log = structlog.get_logger()

SHARE_LEFT = 1 / 3
"""Renewal is due at two thirds of a certificate's life: with less than this left it has failed."""

EXPIRY = Gauge(
    "moorage_tls_certificate_expiry_timestamp_seconds",
    "When this process's certificate expires, in seconds since 1970; identity is its first DNS "
    "name. Absent in plain text.",
    ("identity",),
)

START = Gauge(
    "moorage_tls_certificate_start_timestamp_seconds",
    "When this process's certificate began to be valid, in seconds since 1970: with its expiry, "
    "how much of its life is left. Absent in plain text.",
    ("identity",),
)

RELOADS = Counter(
    "moorage_tls_reloads_total",
    "Certificates that replaced another while the process ran, and those that could not be used "
    "(outcome: reloaded or failed).",
    ("outcome",),
)


class Certificates:
    """The certificate of a folder.

    Attributes:
        current: The certificate that is active.
        problem: Why what the folder holds now is not active; empty if it is.
    """

    def __init__(self, folder: Path) -> None:
        """Read *folder*.

        Raises:
            ConfigurationError: Its files cannot be used.
        """
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
