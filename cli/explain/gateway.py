"""Asks the gateway's admin port for its decisions, with a certificate or a bearer token."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.contexts import client_context
from moorage_host.tls.identities import service_identity

SECONDS = 5.0
"""How long the API server and the gateway may take for an answer."""

Object = Mapping[str, Any]

_NEEDED = "give --tls DIR, an operator's certificate, or --ca-file FILE for a bearer token"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminPort:
    """Where the gateway's admin port is, and how the caller is known there.

    Attributes:
        url: Its address, http:// or https://.
        tls: A folder with an operator's certificate.
        ca_file: Without one, the authorities that sign the gateway's certificate.
        token_file: A bearer token instead of the kubeconfig's.
    """

    url: str
    tls: Path | None = None
    ca_file: Path | None = None
    token_file: Path | None = None

    @property
    def is_secured(self) -> bool:
        """Whether it is HTTPS."""
        return self.url.startswith("https:")


class Gateway:
    """The gateway, as seen from its admin port.

    A token is sent over HTTPS only, to a server that proves to be the gateway.

    Args:
        admin: Where to ask.
        token: The bearer token of the kubeconfig's user, or "".

    Raises:
        ConfigurationError: A file cannot be used, or options do not go together.
    """

    def __init__(self, admin: AdminPort, token: str = "") -> None:
        if not admin.is_secured and (admin.tls or admin.ca_file or admin.token_file):
            raise ConfigurationError(
                "--tls, --ca-file and --token-file need an --admin that begins with https://, "
                f"not {admin.url}"
            )
        self._admin = admin
        self._options: dict[str, Any] = {}
        if admin.is_secured:
            self._options = {"ssl": _context(admin), "server_hostname": service_identity("gateway")}
            token = _read_token(admin.token_file) if admin.token_file else token
            if token and admin.tls is None:
                self._options["headers"] = {"Authorization": f"Bearer {token}"}

    async def attempts(self, namespace: str, name: str, node: str = "") -> tuple[list[Object], str]:
        """Return the attempts that the gateway keeps of a pod, or why it shows none."""
        url = f"{self._admin.url.rstrip('/')}/decisions/{namespace}/{name}"
        query = {"node": node} if node else {}
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(url, params=query, **self._options) as response,
            ):
                text = await response.text()
                if response.status == 200:
                    return msgspec.json.decode(text)["attempts"], ""
        except (aiohttp.ClientError, TimeoutError) as error:
            return [], self._unreachable(error)
        try:
            problem = str(msgspec.json.decode(text)["error"])
        except (msgspec.DecodeError, KeyError, TypeError):
            return [], f"{url} answers {response.status}: is it the gateway's admin port?"
        if response.status == 401:
            return [], f"the gateway's admin port answers: {problem} ({self._missing()})"
        shown = problem.partition(": ")[2] if response.status == 404 else ""
        return [], shown or problem

    def _unreachable(self, error: Exception) -> str:
        reason = str(error) or "it does not answer in time"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            step = "give the --ca-file of the gateway's authority" if self._is_given else _NEEDED
        elif self._admin.is_secured:
            step = "give --admin"
        else:
            step = "give --admin, which is https:// if the gateway has certificates"
        return f"the gateway's admin port cannot be asked ({reason}): {step}"

    @property
    def _is_given(self) -> bool:
        return bool(self._admin.tls or self._admin.ca_file)

    def _missing(self) -> str:
        if "headers" in self._options:
            return "give another --token-file"
        return "the kubeconfig has no token: give --token-file FILE, or --tls DIR"


def _context(admin: AdminPort) -> ssl.SSLContext:
    if admin.tls is not None:
        return client_context(read_certificate(admin.tls))
    try:
        return ssl.create_default_context(cafile=admin.ca_file)
    except OSError as error:  # ssl.SSLError too
        raise ConfigurationError(f"cannot use the --ca-file {admin.ca_file}: {error}") from error


def _read_token(file: Path) -> str:
    try:
        token = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the --token-file {file}: {error}") from error
    if not token.isprintable() or not token:
        raise ConfigurationError(f"the --token-file {file} holds no token")
    return token
