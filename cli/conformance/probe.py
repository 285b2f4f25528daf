"""Sends requests as kube-scheduler's HTTP client does, and keeps the answers for the rules."""

import asyncio
import io
import ssl
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp

from cli.conformance.requests import Object, Request, Requests, shortened
from moorage.errors import ConfigurationError
from moorage_host.kube_scheduler import ExtenderConfig, Verb
from sandbox.scheduler.extenders.client import (
    AnswerError,
    FilterAnswer,
    bind_answer,
    decode_answer,
    extender_context,
    filter_answer,
    preempt_answer,
    score_answer,
)

SECONDS = 5.0
"""For the first connection."""

IDLE_SECONDS = 90.0
"""How long Go keeps an idle connection."""

HEADERS = {
    "User-Agent": "Go-http-client/1.1",
    "Content-Type": "application/json",
    "Accept-Encoding": "gzip",
}

NO_SUCH_NODE = "moorage-conformance-no-such-node"

READERS = {
    "filter": filter_answer,
    "prioritize": score_answer,
    "preempt": preempt_answer,
    "bind": bind_answer,
}
"""How kube-scheduler reads an answer to each verb."""

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back.

    Attributes:
        request: To which request.
        status: The HTTP status, 0 if there was none.
        headers: The headers.
        body: The body, decompressed.
        failure: Why there is no answer, in the words of kube-scheduler.
    """

    request: Request
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str = ""

    def __str__(self) -> str:
        text = shortened(self.body.decode("utf-8", "replace"))
        return self.failure or f"{self.status} {text}".rstrip()

    @cached_property
    def content(self) -> Any:
        """What kube-scheduler reads: a FilterAnswer, scores, victims, or the Error of bind.

        It is an AnswerError if it cannot decode the body, None if it does not read it.
        """
        if self.failure or self.status != 200:
            return None
        try:
            return READERS[self.request.verb](decode_answer(self.body))
        except AnswerError as error:
            return error


class Probe:
    """Sends requests to one extender; `probing` makes it.

    Attributes:
        requests: What writes them.
        answers: All answers.
        replayed: The versions of kube-scheduler whose recorded requests were sent.
    """

    def __init__(
        self, requests: Requests, session: aiohttp.ClientSession, runner: asyncio.Runner
    ) -> None:
        self.requests = requests
        self.answers: list[Answer] = []
        self.replayed: set[str] = set()
        self._session = session
        self._runner = runner
        self._pods: dict[str, Object] = {}

    @property
    def config(self) -> ExtenderConfig:
        """The extender's entry."""
        return self.requests.config

    def offered(self, *verbs: Verb) -> list[Verb]:
        """Return those of some verbs that the extender has."""
        return [verb for verb in verbs if self.config.verb(verb)]

    def url(self, verb: Verb) -> str:
        """Return where kube-scheduler would send a verb."""
        return f"{self.config.url_prefix.rstrip('/')}/{self.config.verb(verb)}"

    def run(self, work: Coroutine[Any, Any, ValueT]) -> ValueT:
        """Run what is asynchronous."""

        async def later() -> ValueT:
            for _ in range(2):  # connections that ended while the loop stood still
                await asyncio.sleep(0)
            return await work

        return self._runner.run(later())

    def send(self, *requests: Request) -> list[Answer]:
        """Send requests at the same time."""
        for request in requests:
            self._note(request)

        async def all_at_once() -> list[Answer]:
            return await asyncio.gather(*map(self._post, requests))

        return self.run(all_at_once())

    def ask(self, *requests: Request) -> list[Answer]:
        """Send requests at the same time, and keep the answers for the rules."""
        answers = self.send(*requests)
        self.answers += answers
        return answers

    def replay(self, version: str) -> list[Answer]:
        """Send what kube-scheduler of a version sent when it was recorded."""
        self.replayed.add(version)
        verbs = self.offered("filter", "prioritize", "preempt")
        return [self.ask(request)[0] for request in self.requests.recorded(version, *verbs)]

    def end_pods(self) -> None:
        """Filter each pod once more, for no node that there is.

        Nobody binds these pods, so an extender that keeps what it decided would show them as about
        to be bound for ever. A whole node always is one that there is, so none is sent.
        """
        if self.config.filter_verb:
            names = [NO_SUCH_NODE] if self.config.node_cache_capable else []
            pods = list(self._pods.values())
            self.send(*(self.requests.scheduling("filter", pod, names) for pod in pods))

    def close(self) -> None:
        """End all connections."""
        self._runner.run(self._session.close())

    async def _post(self, request: Request) -> Answer:
        """Send a request; redirects are followed as in Go."""
        url, body = self.url(request.verb), io.BytesIO(request.body)
        tls = self.config.tls_config
        names = {"server_hostname": tls.server_name} if tls and tls.server_name else {}
        options: dict[str, Any] = {"headers": HEADERS, "data": body, **names}
        try:
            async with self._session.post(url, **options) as found:
                content = await found.read()
                return Answer(
                    request=request, status=found.status, headers=found.headers, body=content
                )
        except TimeoutError:
            reason = "context deadline exceeded"
        except aiohttp.ServerDisconnectedError:
            reason = "EOF"
        except (aiohttp.ClientError, ValueError, OSError) as error:
            reason = str(error) or type(error).__name__
        return Answer(request=request, failure=f'Post "{url}": {reason}')

    def _note(self, request: Request) -> None:
        """Keep the pod that a request is about, if it is one."""
        try:
            pod = request.args["Pod"]
            metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
        except (ValueError, LookupError, TypeError):
            return
        self._pods[metadata["uid"]] = {**pod, "metadata": metadata}


def survivors(config: ExtenderConfig, answer: FilterAnswer) -> list[str]:
    """Return the nodes that pass, by the rules of kube-scheduler."""
    if config.node_cache_capable and answer.names is not None:
        return answer.names
    return [str((node.get("metadata") or {}).get("name", "")) for node in answer.nodes or ()]


@contextmanager
def probing(requests: Requests) -> Iterator[Probe]:
    """Give what checks one extender; end the pods that it was asked about.

    Raises:
        ConfigurationError: A file for TLS cannot be used.
    """

    async def session() -> aiohttp.ClientSession:
        context = extender_context(requests.config)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, ssl=context),
            timeout=aiohttp.ClientTimeout(total=requests.config.timeout),
            skip_auto_headers=("Accept", "User-Agent"),
            max_line_size=2**16,
            max_field_size=2**16,
        )

    with asyncio.Runner() as runner:
        probe = Probe(requests, runner.run(session()), runner)
        try:
            yield probe
            probe.end_pods()
        finally:
            probe.close()


async def check_reachable(config: ExtenderConfig) -> None:
    """Connect to an extender.

    Raises:
        ConfigurationError: Nothing accepts connections, or a file for TLS cannot be used.
    """
    try:
        async with asyncio.timeout(SECONDS):
            _, writer = await connected(config)
    except (OSError, TimeoutError) as error:
        raise ConfigurationError(
            f"cannot connect to {config.url_prefix}: "
            f"{error or f'no answer in {SECONDS:g} s'}; does the extender run, and is its "
            "certificate signed by --ca-file?"
        ) from error
    writer.close()


async def connected(config: ExtenderConfig) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to an extender."""
    url = urlsplit(config.url_prefix)
    context: ssl.SSLContext | bool | None = None
    if url.scheme == "https":
        context = extender_context(config)
    port = url.port or (443 if url.scheme == "https" else 80)
    name = config.tls_config.server_name if config.tls_config else ""
    options: dict[str, Any] = {"server_hostname": name} if context and name else {}
    return await asyncio.open_connection(url.hostname, port, ssl=context, **options)
