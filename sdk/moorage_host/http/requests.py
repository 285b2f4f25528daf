"""Which requests a port refuses whoever sends them; refusals are counted and logged.

A web page can have a browser send requests to any port that the browser reaches. It cannot leave
out `Origin` where the request changes something, and it cannot have `Host` be an address: with DNS
rebinding `Host` is the page's own name. A page that a port serves itself may read from it.
"""

import ipaddress
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import structlog
from aiohttp import hdrs, web
from aiohttp.http import HttpProcessingError
from multidict import istr
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
    "Requests that were refused unread, and connections that were closed.",
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


_HOSTS_CACHED = 256
_SHOWN = 100  # characters
_SITE = istr("Sec-Fetch-Site")
_JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRefusal:
    """Why a request is refused, and what to do about it."""

    status: int
    reason: Reason
    text: str

    def response(self) -> web.Response:
        """Return the answer, which is the last on its connection."""
        answer = web.json_response({"error": self.text}, status=self.status)
        if self.status == web.HTTPUnauthorized.status_code:
            answer.headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
        answer.force_close()
        return answer


class RequestChecks:
    """Checks the headers of requests.

    Args:
        allowed_hosts: Names that `Host` may have beside addresses and localhost; "*.example.com"
            is every name below example.com.
        refusals: Counts what is refused.
        json_only: Whether a POST must say that it is JSON.
        own_pages: Whether a page that came from this very port may read what it has.
    """

    def __init__(
        self,
        allowed_hosts: Iterable[str],
        refusals: Refusals,
        *,
        json_only: bool = False,
        own_pages: bool = False,
    ) -> None:
        allowed = [name.lower().rstrip(".") for name in allowed_hosts]
        self._names = {"localhost", *(name for name in allowed if not name.startswith("*."))}
        self._below = (".localhost", *(name[1:] for name in allowed if name.startswith("*.")))
        self._refusals = refusals
        self._json_only = json_only
        self._own_pages = own_pages
        self._allows = lru_cache(maxsize=_HOSTS_CACHED)(self._is_allowed)

    def refusal(self, request: web.BaseRequest) -> HttpRefusal | None:
        """Return why a request is refused, and count it; None if it is not."""
        headers = request.headers
        hosts = headers.getall(hdrs.HOST, ())
        if len(hosts) != 1:
            found = HttpRefusal(status=400, reason="host", text="a request needs one Host header")
        elif not self._allows(hosts[0]):
            found = _wrong_host(hosts[0])
        elif (hdrs.ORIGIN in headers or _SITE in headers) and self._is_of_a_page(request, hosts[0]):
            found = _FROM_A_PAGE
        elif (
            self._json_only
            and request.method == hdrs.METH_POST
            and headers.get(hdrs.CONTENT_TYPE) != _JSON
            and request.content_type != _JSON  # without parameters, such as a charset
        ):
            found = _NOT_JSON
        else:
            return None
        self._refusals.note(found.reason, found.text)
        return found

    def _is_of_a_page(self, request: web.BaseRequest, host: str) -> bool:
        """Whether a web page has sent a request, other than one of this port that reads."""
        origins, site = request.headers.getall(hdrs.ORIGIN, ()), request.headers.get(_SITE, "none")
        if self._own_pages and request.method in (hdrs.METH_GET, hdrs.METH_HEAD):
            own = f"{request.scheme}://{host}"
            return site not in ("none", "same-origin") or any(each != own for each in origins)
        return bool(origins) or site != "none"

    def _is_allowed(self, host: str) -> bool:
        name = _without_port(host).lower().removesuffix(".")
        return name in self._names or name.endswith(self._below) or _is_address(name)


_FROM_A_PAGE = HttpRefusal(
    status=403,
    reason="origin",
    text="requests of web pages (with Origin or Sec-Fetch-Site) are refused; use curl or another "
    "program",
)

_NOT_JSON = HttpRefusal(
    status=415,
    reason="content_type",
    text="a POST needs Content-Type: application/json, as kube-scheduler sends it",
)


def _wrong_host(host: str) -> HttpRefusal:
    shown = "".join(each for each in host[:_SHOWN] if each.isprintable())
    return HttpRefusal(
        status=421,
        reason="host",
        text=f'this port is not "{shown}"; use its address, or name it with --allowed-host',
    )


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0][1:]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
