"""Asks a gateway's admin port, as somebody whom it knows; the gateway has to prove to be one."""

import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from cli.shared.gateway.finding import GatewayError, find_gateway
from cli.shared.gateway.forwarding import LOOPBACK, Forwarding, forwarded
from cli.shared.gateway.options import GatewayOptions
from cli.shared.gateway.pods import AdminPort
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, KubeError, KubeStatusError, KubeUnreachableError, connect
from moorage_host.tls.certificate import AUTHORITIES, CHAIN, KEY, read_certificate
from moorage_host.tls.identities import service_identity
from moorage_host.tls.security import client_context

SECONDS = 5.0
"""How long the gateway may take for an answer."""

_NEEDED = "give --tls DIR, an operator's certificate, or --ca-file FILE for a bearer token"

IDENTITY = service_identity("gateway")

OPERATOR_SECRET = "operator-tls"  # noqa: S105 - a name
"""The Secret of people, as `moorage certs --secrets` and cert-manager write it."""


class Gateway:
    """The admin port of a gateway; `connected` makes it.

    Args:
        session: Has the connections, and how the caller is known.
        url: The address of the admin port.
        options: What the user gave, for the next step in messages.
        forwarded: The way to its pod, if it is not reached directly.
        arguments: Those of each request.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        options: GatewayOptions,
        *,
        forwarded: Forwarding | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self._session = session
        self._options = options
        self._forwarded = forwarded
        self._arguments = dict(arguments or {})
        self.url = url.rstrip("/")

    @property
    def place(self) -> str:
        """Where it is, for people: its address, or its pod."""
        return f"pod {self._forwarded.pod}" if self._forwarded is not None else self.url

    @property
    def pod(self) -> AdminPort | None:
        """Its pod, if it is reached through the API server."""
        return self._forwarded.pod if self._forwarded is not None else None

    async def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        statuses: Collection[int] = (200,),
    ) -> Any:
        """Return an answer with one of some *statuses*, decoded from JSON.

        Raises:
            GatewayError: It is no success, or no answer came; the message has the next step.
        """
        text = await self.text(path, query, statuses=statuses)
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise GatewayError(
                f"{self.url}{path} answers no JSON: is it the gateway's admin port?"
            ) from error

    async def post(self, path: str, body: object) -> Any:
        """Send *body* as JSON; return the answer and raise as `get`."""
        return msgspec.json.decode(await self.text(path, body=msgspec.json.encode(body)))

    async def text(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        statuses: Collection[int] = (200,),
        body: bytes | None = None,
    ) -> str:
        """Return the text of an answer, to a POST if there is a *body*; raises the same."""
        try:
            async with self._session.request(
                "GET" if body is None else "POST",
                f"{self.url}{path}",
                data=body,
                params=query or {},
                timeout=aiohttp.ClientTimeout(total=SECONDS),
                allow_redirects=False,
                **self._arguments,
            ) as response:
                text = await response.text()
                if response.status in statuses:
                    return text
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self.unreachable(error) from error
        raise self._refused(path, response.status, text)

    def _refused(self, path: str, status: int, text: str) -> GatewayError:
        try:
            problem = str(msgspec.json.decode(text)["error"])
        except (msgspec.DecodeError, KeyError, TypeError):
            problem = f"{self.url}{path} answers {status}: is it the gateway's admin port?"
        else:
            if status == 401:
                problem = f"the gateway's admin port answers: {problem} ({self._missing()})"
        return GatewayError(problem, status=status)

    def open(
        self, path: str, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Open an answer, of any status, to be read as it comes, however long that takes.

        Raises:
            aiohttp.ClientError: It cannot be had; see `unreachable`.
            OSError: The same.
        """
        arguments = {**self._arguments}
        return self._session.get(
            URL(f"{self.url}{path}", encoded=True),
            headers={**headers, **arguments.pop("headers", {})},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=SECONDS),
            allow_redirects=False,
            **arguments,
        )

    def unreachable(self, error: Exception) -> GatewayError:
        """Return why no answer came, with the next step."""
        reason = str(error) or "it does not answer in time"
        if self._forwarded is not None:
            if self._forwarded.refused is not None:
                return self._forwarded.refused
            reason = self._forwarded.problem or reason
        if self._options.is_embedded:
            step = "does `moorage up` still run?"
        elif _is_of_certificate(error):
            is_given = self._options.tls or self._options.ca_file
            step = "give the --ca-file of the gateway's authority" if is_given else _NEEDED
        elif self._forwarded is not None or self.url.startswith("https:"):
            step = "give --admin"
        else:
            step = "give --admin, which is https:// if the gateway has certificates"
        return GatewayError(f"the gateway's admin port cannot be asked ({reason}): {step}")

    def _missing(self) -> str:
        if "Authorization" in self._arguments.get("headers", {}):
            return "the token of the kubeconfig's user is not known there"
        return "the kubeconfig's user has no token: give --tls DIR"


def unreached(error: KubeUnreachableError, options: GatewayOptions) -> KubeUnreachableError:
    """Return why the API server is not reached; that of `moorage up` has ended with it."""
    ended = "`moorage up` no longer runs: " if options.is_embedded else ""
    return KubeUnreachableError(f"{ended}{error}")


def _is_of_certificate(error: Exception) -> bool:
    kinds = (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError)
    return isinstance(error, kinds) or isinstance(error.__cause__, kinds)


@asynccontextmanager
async def connected(
    options: GatewayOptions, client: KubeClient | None = None
) -> AsyncIterator[Gateway]:
    """Give the gateway that the options lead to.

    A token is sent over HTTPS only, to a server that proves to be the gateway.

    Args:
        options: What the user gave.
        client: The API server, if there is a connection already.

    Raises:
        ConfigurationError: A file cannot be used, or options do not go together.
        GatewayError: There is no gateway, or it cannot be reached through the API server.
        KubeError: The API server does not answer, or refuses to.
    """
    async with AsyncExitStack() as stack:
        is_secured = options.admin.startswith("https:")
        if client is None and (not options.admin or (is_secured and options.tls is None)):
            client = await connect(options.kubeconfig, context=options.context or None)
            stack.push_async_callback(client.close)
        if client is not None and not options.admin:
            pod = await find_gateway(client, options.gateway)
            way = connected_to_pod(options, client, pod, IDENTITY)
            yield await stack.enter_async_context(way)
            return
        arguments = await _known_as(options, client, IDENTITY) if is_secured else {}
        if not is_secured:
            _require_plain(options)
        session = await stack.enter_async_context(_session())
        yield Gateway(session, options.admin, options, arguments=arguments)


@asynccontextmanager
async def connected_to_pod(
    options: GatewayOptions, client: KubeClient, pod: AdminPort, identity: str
) -> AsyncIterator[Gateway]:
    """Give the admin port of one pod of Moorage, of any service.

    Args:
        options: How the caller is known.
        client: The API server.
        pod: The pod.
        identity: The name that its certificate must have.

    Raises:
        ConfigurationError: A file cannot be used, or options do not go together.
        GatewayError: It cannot be reached through the API server.
    """
    arguments: dict[str, Any] = {}
    if pod.is_secured:
        arguments = await _known_as(options, client, identity, pod.namespace)
    else:
        _require_plain(options)
    scheme = "https" if pod.is_secured else "http"
    async with forwarded(client, pod) as way, _session() as session:
        url = f"{scheme}://{LOOPBACK}:{way.port}"
        yield Gateway(session, url, options, forwarded=way, arguments=arguments)


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())


def _require_plain(options: GatewayOptions) -> None:
    if options.tls or options.ca_file:
        where = options.admin or f"the gateway in {options.gateway}, which has no certificates"
        raise ConfigurationError(
            f"--tls and --ca-file need an --admin that begins with https://, not {where}"
        )


# ---- how the caller is known


async def _known_as(
    options: GatewayOptions, client: KubeClient | None, identity: str, namespace: str = ""
) -> dict[str, Any]:
    """Return the arguments of requests over HTTPS: whom the caller believes, and who it is.

    Args:
        options: What the user gave.
        client: The API server; None only with an operator's certificate.
        identity: The name that the other side's certificate must have.
        namespace: Where a Secret has the certificate if none is given; "" without one.

    Raises:
        GatewayError: The Secret may not be read, or there is none.
        ConfigurationError: A file cannot be used.
    """
    known: dict[str, Any] = {"server_hostname": identity}
    if options.tls is not None:
        return {**known, "ssl": client_context(read_certificate(options.tls))}
    assert client is not None  # noqa: S101 - see above
    if namespace and options.ca_file is None:
        return {**known, "ssl": await _context_of_secret(client, namespace)}
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
    except OSError as error:  # ssl.SSLError too
        raise ConfigurationError(f"cannot use the --ca-file {options.ca_file}: {error}") from error
    token = await client.token()
    return {
        **known,
        "ssl": context,
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
    }


async def _context_of_secret(client: KubeClient, namespace: str) -> ssl.SSLContext:
    """Return what connects with the operator's certificate in a namespace."""
    path = f"/api/v1/namespaces/{namespace}/secrets/{OPERATOR_SECRET}"
    try:
        answer = await client.request("GET", path, timeout=SECONDS)
        data = msgspec.json.decode(answer.check().body).get("data") or {}
    except (KubeError, TimeoutError) as error:
        reason = (error.message if isinstance(error, KubeStatusError) else "") or error
        raise GatewayError(
            "the gateway has certificates: give --ca-file FILE for a bearer token, or --tls DIR, "
            f"an operator's certificate (Secret {namespace}/{OPERATOR_SECRET}: {reason})"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        for name in (CHAIN, KEY, AUTHORITIES):
            if name in data:
                (Path(folder) / name).write_bytes(base64.b64decode(data[name]))
        try:
            return client_context(read_certificate(Path(folder)))
        except ConfigurationError as error:
            text = str(error).replace(folder, f"Secret {namespace}/{OPERATOR_SECRET}")
            raise ConfigurationError(text) from error
