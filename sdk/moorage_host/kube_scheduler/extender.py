"""Calls one extender as the HTTP client of kube-scheduler does, byte for byte, and reads answers.

Answers are read by the rules of encoding/json of Go and the checks of kube-scheduler: keys match in
any case, unknown ones are ignored, null is the zero value, text after the first value does not
matter; a wrong type fails the whole answer.
"""

import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

import aiohttp

from moorage.errors import ConfigurationError
from moorage.models import Pod
from moorage_host.kube_scheduler import ExtenderConfig
from moorage_host.kube_scheduler.gojson import dumps

_INT64 = range(-(2**63), 2**63)
_IN_GO = {str: "string", int: "int64", list: "[]", dict: "map"}
T = TypeVar("T")


class ExtenderError(Exception):
    """An extender did not do what it was asked; the message is what users read."""


class AnswerError(ExtenderError):
    """Go would refuse this answer; the message is close to Go's own."""


class FilterAnswer(NamedTuple):
    """An ExtenderFilterResult; None where the field is null or absent."""

    names: list[str] | None
    nodes: list[dict[str, Any]] | None
    failed: dict[str, str]
    unresolvable: dict[str, str]
    error: str


def decode_answer(text: bytes) -> Any:
    """Read the first JSON value of an answer.

    Raises:
        AnswerError: There is none, or it is not JSON as Go knows it (which has no NaN).
    """
    source = text.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not source:
        raise AnswerError("EOF")
    try:
        return _DECODER.raw_decode(source)[0]
    except json.JSONDecodeError as error:
        if error.pos >= len(source):
            raise AnswerError("unexpected EOF") from error
        raise AnswerError(_invalid(source[error.pos])) from error


def filter_answer(value: Any) -> FilterAnswer:
    """Check the shape of a filter answer.

    Raises:
        AnswerError: A field has the wrong type.
    """
    fields = _fields(value, "ExtenderFilterResult")
    nodes = fields.get("nodes")
    return FilterAnswer(
        names=_names(fields.get("nodenames")),
        nodes=None if nodes is None else _node_items(nodes),
        failed=_reasons(fields.get("failednodes"), "FailedNodes"),
        unresolvable=_reasons(
            fields.get("failedandunresolvablenodes"), "FailedAndUnresolvableNodes"
        ),
        error=_as(str, fields.get("error"), "ExtenderFilterResult.Error"),
    )


def score_answer(value: Any) -> list[tuple[str, int]]:
    """Check the shape of a prioritize answer: hosts and integers, hosts possibly repeated.

    Raises:
        AnswerError: A field has the wrong type, for instance a score that is not an integer.
    """
    return [_score(item) for item in _as(list, value, "v1.HostPriorityList")]


def preempt_answer(value: Any) -> dict[str, list[str]]:
    """Check the shape of a preempt answer: uids of victims per node, in the order given.

    Raises:
        AnswerError: A field has the wrong type; also for a null where kube-scheduler would crash.
    """
    field = "NodeNameToMetaVictims"
    nodes = _fields(value, "ExtenderPreemptionResult").get(field.lower())
    return {node: _uids(victims, node) for node, victims in _as(dict, nodes, field).items()}


def bind_answer(value: Any) -> str:
    """Return the error in a bind answer, "" for success.

    Raises:
        AnswerError: The field has the wrong type.
    """
    fields = _fields(value, "ExtenderBindingResult")
    return _as(str, fields.get("error"), "ExtenderBindingResult.Error")


def _refuse_constant(name: str) -> NoReturn:
    raise AnswerError(_invalid(name[0]))


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _invalid(character: str) -> str:
    return f"invalid character {character!r} looking for beginning of value"


def _fields(value: Any, kind: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        _mismatch(value, f"value of type v1.{kind}")
    return {key.lower(): item for key, item in value.items()}


def _as(kind: type[T], value: Any, field: str) -> T:
    """Return a value as Go's type of a field; null is its zero value."""
    if value is None:
        return kind()
    wrong = not isinstance(value, kind) or isinstance(value, bool)
    if wrong or (kind is int and value not in _INT64):
        _mismatch(value, f"struct field {field} of type {_IN_GO[kind]}")
    found: T = value
    return found


def _names(value: Any) -> list[str] | None:
    field = "ExtenderFilterResult.NodeNames"
    if value is None:
        return None
    names = _as(list, value, field)
    if set(map(type, names)) <= {str}:  # thousands of names, and nearly always just that
        return names
    return [_as(str, name, field) for name in names]


def _score(item: Any) -> tuple[str, int]:
    if type(item) is dict and type(item.get("Score")) is int and "Host" in item:
        host, score = item["Host"], item["Score"]  # as nearly always, so no detours
    else:
        fields = _fields(item, "HostPriority")
        host, score = fields.get("host"), fields.get("score")
    return _as(str, host, "HostPriority.Host"), _as(int, score, "HostPriority.Score")


def _node_items(value: Any) -> list[dict[str, Any]]:
    items = _as(list, _fields(value, "NodeList").get("items"), "NodeList.items")
    for item in items:
        if not isinstance(item, dict):
            _mismatch(item, "struct field NodeList.items of type v1.Node")
    return items


def _uids(victims: Any, node: str) -> list[str]:
    if victims is None:
        raise AnswerError(f"null victims for node {node!r} (this crashes a real kube-scheduler)")
    pods = _as(list, _fields(victims, "MetaVictims").get("pods"), "MetaVictims.Pods")
    if None in pods:
        raise AnswerError(f"a null victim on node {node!r} (this crashes a real kube-scheduler)")
    return [_as(str, _fields(pod, "MetaPod").get("uid"), "MetaPod.UID") for pod in pods]


def _reasons(value: Any, field: str) -> dict[str, str]:
    return {key: _as(str, item, field) for key, item in _as(dict, value, field).items()}


def _mismatch(value: Any, target: str) -> NoReturn:
    match value:
        case bool():
            given = "bool"
        case int() | float():
            given = f"number {value}"
        case str():
            given = "string"
        case list():
            given = "array"
        case _:
            given = "object"
    raise AnswerError(f"json: cannot unmarshal {given} into Go {target}")


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
