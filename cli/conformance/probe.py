"""Sends the requests of checks as kube-scheduler's HTTP client does, and keeps what was found."""

import asyncio
import io
import ssl
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import aiohttp

from cli.conformance.findings import Exchange, Finding, Severity
from cli.conformance.judging import Reading, judge, survivors
from cli.conformance.requests import Answer, Object, Request, Requests
from moorage.errors import ConfigurationError
from sandbox.scheduler.config import ExtenderConfig, Verb
from sandbox.scheduler.extenders.client import FilterAnswer, extender_context

SECONDS = 5.0
"""For the first connection."""

IDLE_SECONDS = 90.0
"""How long Go keeps an idle connection."""

MOST_REDIRECTS = 10
"""How many Go follows."""

HEADERS = {
    "User-Agent": "Go-http-client/1.1",
    "Content-Type": "application/json",
    "Accept-Encoding": "gzip",
}

NO_SUCH_NODE = "moorage-conformance-no-such-node"

ValueT = TypeVar("ValueT")


class Probe:
    """Sends requests to one extender and judges its answers; `probing` makes it.

    Attributes:
        requests: What is sent.
        check: The check that runs.
        findings: What was found, by check.
        sent: How many requests were sent, by verb.
        replayed: The versions of kube-scheduler whose recorded requests were sent.
    """

    def __init__(
        self, requests: Requests, session: aiohttp.ClientSession, runner: asyncio.Runner
    ) -> None:
        self.requests = requests
        self._session = session
        self.check = ""
        self.findings: defaultdict[str, list[Finding]] = defaultdict(list)
        self.sent: Counter[Verb] = Counter()
        self._runner = runner
        self._pods: dict[str, Object] = {}
        self.replayed: set[str] = set()

    @property
    def config(self) -> ExtenderConfig:
        """The extender's entry."""
        return self.requests.config

    def offers(self, verb: Verb) -> bool:
        """Whether the extender has a verb."""
        return bool(self.config.verb(verb))

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

    def ask(self, request: Request) -> Reading | None:
        """Send a request, judge the answer and return it decoded; None if the call failed."""
        return self.ask_all([request])[0]

    def ask_all(self, requests: Iterable[Request]) -> list[Reading | None]:
        """Send requests at the same time; return their answers as `ask` does."""
        requests = list(requests)
        return [self._judged(*each) for each in zip(requests, self._send(requests), strict=True)]

    def send(self, request: Request) -> Answer:
        """Send a request whose answer the caller judges."""
        return self._send([request])[0]

    def cycle(self, pod: Object | None = None, names: Sequence[str] | None = None) -> None:
        """Send filter, and prioritize for the survivors if there are several, for one pod."""
        names = self.requests.nodes if names is None else names
        if self.offers("filter"):
            reading = self.ask(self.requests.scheduling("filter", pod, names))
            names = ()
            if isinstance(reading, FilterAnswer) and not reading.error:
                names = survivors(self.config, reading)
        if self.offers("prioritize") and len(names) > 1:
            self.ask(self.requests.scheduling("prioritize", pod, names))

    def replay(self, version: str) -> None:
        """Send what kube-scheduler of a version sent when it was recorded, once."""
        if version in self.replayed:
            return
        self.replayed.add(version)
        self.check, former = f"recorded-{version}", self.check
        verbs = self.offered("filter", "prioritize", "preempt")
        for request in self.requests.recorded(version, *verbs):
            self.ask(request)
        self.check = former

    def report(
        self,
        request: Request,
        answer: Answer,
        severity: Severity,
        consequence: str,
        **about: str,
    ) -> None:
        """Add a finding; see `Exchange.finding`."""
        finding = self._exchange(request, answer).finding(severity, consequence, **about)
        self.findings[finding.check].append(finding)

    def offered(self, *verbs: Verb) -> list[Verb]:
        """Return those of some verbs that the extender has."""
        return [verb for verb in verbs if self.offers(verb)]

    def end_pods(self) -> None:
        """Filter each pod once more, for no node that there is.

        Nobody binds these pods, so an extender that keeps what it decided would show them as about
        to be bound for ever. A whole node always is one that there is, so none is sent.
        """
        if self.offers("filter"):
            pods, names = list(self._pods.values()), [NO_SUCH_NODE]
            if not self.config.node_cache_capable:
                names = []
            self._send([self.requests.scheduling("filter", pod, names) for pod in pods])

    def close(self) -> None:
        """End all connections."""
        self._runner.run(self._session.close())

    def _send(self, requests: Sequence[Request]) -> list[Answer]:
        for request in requests:
            self.sent[request.verb] += 1
            self._note(request)

        async def all_at_once() -> list[Answer]:
            return await asyncio.gather(*map(self._answer, requests))

        return self.run(all_at_once())

    async def _answer(self, request: Request) -> Answer:
        """Send a request and return the answer or the failure; redirects are followed as in Go."""
        url, redirects = self.url(request.verb), list[int]()
        began = time.monotonic()
        while True:
            answer = await self._post(url, request)
            again = answer.status in (307, 308) and "Location" in answer.headers
            if not again or len(redirects) == MOST_REDIRECTS:
                break
            redirects.append(answer.status)
            url = urljoin(url, answer.headers["Location"])
        seconds = time.monotonic() - began
        return replace(answer, seconds=seconds, redirects=tuple(redirects))

    async def _post(self, url: str, request: Request) -> Answer:
        options: dict[str, Any] = {
            "headers": {**HEADERS, **request.headers},
            "data": io.BytesIO(request.body),
            "allow_redirects": False,
        }
        tls = self.config.tls_config
        if tls and tls.server_name:
            options["server_hostname"] = tls.server_name
        try:
            async with self._session.post(url, **options) as response:
                body = await response.read()
                return Answer(status=response.status, headers=response.headers, body=body)
        except TimeoutError:
            return Answer(failure=f'Post "{url}": context deadline exceeded')
        except (aiohttp.ClientError, ValueError, OSError) as error:
            return Answer(failure=f'Post "{url}": {_reason(error)}')

    def _note(self, request: Request) -> None:
        """Keep the pod that a request is about, if it is one."""
        try:
            pod = request.args["Pod"]
            metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
        except (ValueError, LookupError, TypeError):
            return
        self._pods[metadata["uid"]] = {**pod, "metadata": metadata}

    def _judged(self, request: Request, answer: Answer) -> Reading | None:
        found: list[Finding] = []
        reading = judge(self._exchange(request, answer), found)
        for finding in found:
            self.findings[finding.check].append(finding)
        return reading

    def _exchange(self, request: Request, answer: Answer) -> Exchange:
        return Exchange(
            config=self.config,
            best_score=self.requests.best_score,
            check=self.check,
            request=request,
            answer=answer,
        )


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


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__
