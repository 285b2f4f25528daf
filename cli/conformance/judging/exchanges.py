"""An exchange as the rules see it, and the sentences that several of them share."""

from dataclasses import dataclass

from cli.conformance.exchange import Answer, Request, Verb
from cli.conformance.findings import ALL, Finding, Severity, shortened
from sandbox.scheduler.config import ExtenderConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and its answer.

    Attributes:
        config: The extender's entry: what an answer means depends on it.
        best_score: The highest score that the extender documents.
        check: The check that sent the request.
    """

    config: ExtenderConfig
    best_score: int
    check: str
    request: Request
    answer: Answer

    def finding(
        self,
        severity: Severity,
        consequence: str,
        *,
        check: str = "",
        got: str = "",
        versions: str = ALL,
    ) -> Finding:
        """Return a finding about this exchange, of *check*; by default of the one that sent it."""
        return Finding(
            check=check or self.check,
            severity=severity,
            sent=str(self.request),
            got=shortened(got or str(self.answer)),
            consequence=consequence,
            versions=versions,
        )


FAILED: dict[Verb, tuple[Severity, str]] = {
    "filter": (
        Severity.BREAKS,
        "ends the pod's attempt with SchedulerError, without preemption; the next is in 1 to 10 s",
    ),
    "prioritize": (
        Severity.IGNORED,
        "goes on without a score of this extender, and logs that at level 5 only",
    ),
    "preempt": (
        Severity.BREAKS,
        "gives up preemption for the pod, which stays unschedulable; the text is in its event",
    ),
    "bind": (
        Severity.BREAKS,
        "forgets the assumed pod and tries again in 1 to 10 s, also if the bind went through",
    ),
}
"""What kube-scheduler does when a call fails."""

IGNORED: dict[Verb, tuple[Severity, str]] = {
    "filter": (Severity.WRONG, "skips the extender, since it is ignorable: all nodes pass"),
    "prioritize": FAILED["prioritize"],
    "preempt": (
        Severity.WRONG,
        "skips the extender, since it is ignorable: all candidates stay as they are",
    ),
    "bind": (Severity.WRONG, "binds the pod itself, since the extender is ignorable"),
}
"""The same for an extender that is ignorable."""


def failed_call(exchange: Exchange) -> tuple[Severity, str]:
    """Return the severity of a failed call, and what kube-scheduler does then."""
    table = IGNORED if exchange.config.ignorable else FAILED
    return table[exchange.request.verb]
