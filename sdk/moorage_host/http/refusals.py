"""Counts and logs what an HTTP port refuses before a handler sees it.

The limits of the log count the refusals for each reason apart.
"""

import logging
import re
from typing import Literal, TypeAlias

import structlog
from aiohttp.http import HttpProcessingError
from prometheus_client import Counter

log = structlog.get_logger()

Port: TypeAlias = Literal["extender", "admin", "api-server"]

Reason: TypeAlias = Literal[
    "connections",
    "content_type",
    "handshake",
    "head",
    "head_time",
    "host",
    "identity",
    "origin",
]

REFUSED = Counter(
    "moorage_http_refused_total",
    "Requests that were refused before they were read, and connections that were closed, by port "
    "and reason.",
    ("port", "reason"),
)

_LONGEST = 200  # characters
_QUOTATION = re.compile(r"""[:\n"'\\]|\bb['"]""")


class Refusals:
    """What one port refuses."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def note(self, reason: Reason, problem: str) -> None:
        """Count a refusal, and log it."""
        REFUSED.labels(self._port, reason).inc()
        event = f"An HTTP port refused something: {reason}"
        log.warning(event, port=self._port, problem=problem[:_LONGEST])

    def logger(self) -> logging.Logger:
        """Return the logger for `aiohttp.web.Server`: a malformed head is a refusal."""
        logger = logging.Logger("moorage_host.http")
        logger.parent = logging.getLogger()
        logger.addFilter(self._is_no_refusal)
        return logger

    def _is_no_refusal(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError):
            return True
        # What follows is quoted from the head, and may be a token.
        kind = _QUOTATION.split(error.message, maxsplit=1)[0].strip()
        self.note("head", f"a request's head is malformed or too large: {kind}")
        return False
