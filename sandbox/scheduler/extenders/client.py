"""Calls one extender as kube-scheduler's HTTP client does, byte for byte."""

import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from moorage.errors import ConfigurationError
from moorage.models import Pod
from sandbox.scheduler.config import ExtenderConfig
from sandbox.scheduler.extenders.answers import ExtenderError as ExtenderError
from sandbox.scheduler.extenders.answers import decode_answer
from sandbox.scheduler.extenders.gojson import dumps


def extender_context(config: ExtenderConfig) -> ssl.SSLContext | bool:
    """Return the context for an extender; True means that of the HTTP client.

    Raises:
        ConfigurationError: A file cannot be used.
    """
    tls = config.tls_config
    if tls is None and not config.enable_https:
        return True
    try:
        context = ssl.create_default_context(cafile=(tls.ca_file or None) if tls else None)
        if tls and tls.cert_file:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except OSError as error:  # those of ssl too
        raise ConfigurationError(
            f"cannot use the files in tlsConfig of the extender at {config.url_prefix}: {error}"
        ) from error
    # Like kube-scheduler: enableHTTPS without a CA verifies nothing.
    trusts = tls is not None and bool(tls.ca_file)
    if (tls and tls.insecure) or (config.enable_https and not trusts):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def filter_body(pod: bytes, nodes: Mapping[str, bytes], names_only: bool) -> bytes:
    """Write ExtenderArgs, the body of filter and prioritize."""
    if names_only:
        return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, dumps(list(nodes)))
    items = b",".join(nodes.values())
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, items)


def preempt_body(
    pod: bytes, victims: Mapping[str, Sequence[tuple[str, bytes]]], uids_only: bool
) -> bytes:
    """Write ExtenderPreemptionArgs; victims are uid and JSON per node, highest priority first."""
    nodes = b",".join(
        b'%b:{"Pods":[%b],"NumPDBViolations":0}'
        % (dumps(node), b",".join(_victim(*victim, uids_only) for victim in victims[node]))
        for node in sorted(victims)
    )
    if uids_only:
        return b'{"Pod":%b,"NodeNameToVictims":null,"NodeNameToMetaVictims":{%b}}' % (pod, nodes)
    return b'{"Pod":%b,"NodeNameToVictims":{%b},"NodeNameToMetaVictims":null}' % (pod, nodes)


def bind_body(pod: Pod, node: str) -> bytes:
    """Write ExtenderBindingArgs."""
    return dumps(
        {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
    )


def _victim(uid: str, document: bytes, uids_only: bool) -> bytes:
    return b'{"UID":%b}' % dumps(uid) if uids_only else document


_IDLE_SECONDS = 90.0  # Go's IdleConnTimeout

_MOST_IDLE = 2
"""Connections that outlive their calls, Go's MaxIdleConnsPerHost: those of more calls at once end
with them. So a Service soon leads away from a gateway that no longer decides."""


class Extender:
    """One extender's client: `async with` opens and closes its connections.

    Args:
        config: The extender's part of the configuration.
    """

    def __init__(self, config: ExtenderConfig) -> None:
        self.config = config
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._sessions: tuple[aiohttp.ClientSession, ...] = ()
        self._calls = 0

    async def __aenter__(self) -> "Extender":
        tls = extender_context(self.config)
        kept = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS, ssl=tls)
        closed = aiohttp.TCPConnector(limit=0, force_close=True, ssl=tls)
        self._sessions = tuple(
            aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=self.config.timeout),
                skip_auto_headers=("Accept", "User-Agent"),
            )
            for connector in (kept, closed)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions:
            await session.close()

    @property
    def name(self) -> str:
        """The extender's name, which is its URL."""
        return self.config.url_prefix

    def is_interested(self, pod: Pod) -> bool:
        """Whether the extender manages everything, or one of the pod's resources."""
        if not self._managed:
            return True
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        return any(
            not self._managed.isdisjoint((*c.resources.requests, *c.resources.limits))
            for c in containers
        )

    async def call(self, verb: str, body: bytes) -> Any:
        """POST once and return the answer's JSON.

        Raises:
            ExtenderError: The call failed in any way.
        """
        url = f"{self.config.url_prefix.rstrip('/')}/{verb}"
        return decode_answer(await self._post(verb, url, body))

    async def _post(self, verb: str, url: str, body: bytes) -> bytes:
        if not self._sessions:
            raise RuntimeError("an extender is called inside `async with` only")
        session = self._sessions[self._calls >= _MOST_IDLE]
        self._calls += 1
        answered = False
        options: Any = {"data": body, "headers": _headers(body), **self._server_name()}
        try:
            async with session.post(url, **options) as response:
                answered = True
                if response.status != 200:
                    raise ExtenderError(
                        f"failed {verb} with extender at URL {url}, code {response.status}"
                    )
                return await response.read()
        except TimeoutError as error:
            raise ExtenderError(_timeout_message(url, answered)) from error
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise ExtenderError(f'Post "{url}": {_network_message(error)}') from error
        finally:
            self._calls -= 1

    def _server_name(self) -> dict[str, str]:
        tls = self.config.tls_config
        return {"server_hostname": tls.server_name} if tls and tls.server_name else {}


def _headers(body: bytes) -> dict[str, str]:
    return {
        "User-Agent": "Go-http-client/1.1",
        "Content-Length": str(len(body)),
        "Content-Type": "application/json",
        "Accept-Encoding": "gzip",
    }


def _timeout_message(url: str, answered: bool) -> str:
    if answered:
        return (
            "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
        )
    return (
        f'Post "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    )


def _network_message(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorError(host=host, port=port, os_error=ConnectionRefusedError()):
            return f"dial tcp {host}:{port}: connect: connection refused"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case ConnectionResetError() | aiohttp.ClientOSError(errno=104):
            return "read: connection reset by peer"
    return str(error) or type(error).__name__
