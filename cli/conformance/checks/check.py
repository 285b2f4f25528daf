"""What a check is, and what it has to work with."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from cli.conformance.client import Client
from cli.conformance.exchange import Answer, Object, Request, Verb
from cli.conformance.findings import Finding, Severity
from cli.conformance.judging import Judge, Reading
from cli.conformance.judging.exchanges import Exchange
from cli.conformance.judging.filters import survivors
from cli.conformance.requests import Requests
from sandbox.scheduler.extenders.answers import FilterAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What checks send requests with, and where findings go."""

    client: Client
    requests: Requests
    findings: list[Finding] = field(default_factory=list)
    sent: Counter[Verb] = field(default_factory=Counter)

    async def ask(self, check: str, request: Request) -> Reading | None:
        """Send a request, judge the answer and return it decoded; None if the call failed."""
        answer = await self.send(request)
        judge = Judge(self.client.config, self.requests.best_score, self.findings)
        return judge.judge(check, request, answer)

    async def cycle(
        self, check: str, pod: Object | None = None, names: Sequence[str] | None = None
    ) -> None:
        """Send filter, and prioritize for the survivors if there are several, for one pod."""
        names = self.requests.nodes if names is None else names
        if self.client.offers("filter"):
            request = self.requests.scheduling("filter", pod, names)
            reading = await self.ask(check, request)
            names = ()
            if isinstance(reading, FilterAnswer) and not reading.error:
                names = survivors(self.client.config, reading)
        if self.client.offers("prioritize") and len(names) > 1:
            await self.ask(check, self.requests.scheduling("prioritize", pod, names))

    async def send(self, request: Request) -> Answer:
        """Send a request whose answer the caller judges."""
        self.sent[request.verb] += 1
        return await self.client.send(request)

    def report(
        self,
        check: str,
        request: Request,
        answer: Answer,
        severity: Severity,
        consequence: str,
        *,
        got: str = "",
        versions: str = "all",
    ) -> None:
        """Add a finding of a check."""
        exchange = Exchange(
            config=self.client.config,
            best_score=self.requests.best_score,
            check=check,
            request=request,
            answer=answer,
        )
        self.findings.append(exchange.finding(severity, consequence, got=got, versions=versions))

    def offered(self, *verbs: Verb) -> Sequence[Verb]:
        """Return those of some verbs that the extender has."""
        return [verb for verb in verbs if self.client.offers(verb)]


Run = Callable[[Probe], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is checked.

    Attributes:
        name: Its name.
        about: What is sent, or looked at in every answer.
        verb: The verb it needs, "" if any will do.
        run: Sends its requests; None for what is looked at in the answers to all others.
        is_slow: Whether it takes minutes, and so runs only when asked for.
        needs_resources: Whether it concerns only extenders with managedResources.
    """

    name: str
    about: str
    verb: Verb | None = None
    run: Run | None = None
    is_slow: bool = False
    needs_resources: bool = False

    @property
    def docs(self) -> str:
        """The section of the documentation."""
        return f"docs/reference/conformance.md#{self.section}"

    @property
    def section(self) -> str:
        """The heading of the section, in lower case."""
        if self.name.startswith("recorded-"):
            return "recorded-traffic"
        return self.verb or "http"
