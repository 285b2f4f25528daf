"""What is reported: findings about exchanges, and how severe they are."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from cli.conformance.requests import Answer, Request, shortened
from sandbox.scheduler.config import ExtenderConfig, Verb

ALL = "all"
"""Every version of kube-scheduler from 1.30 on does this."""

UP_TO_GO_1_26 = "1.30 to 1.37"
"""Versions that are built with Go 1.26 or older."""

DOCS = "docs/reference/conformance.md"


class Severity(StrEnum):
    """What a finding does to scheduling, the worst first."""

    BREAKS = "breaks scheduling"
    WRONG = "wrong placement"
    IGNORED = "ignored silently"
    STYLE = "style"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that kube-scheduler would do with answers like this one.

    Attributes:
        check: The check that found it.
        severity: How bad it is.
        sent: The request, shortened.
        got: What came back.
        consequence: What kube-scheduler does with it.
        versions: Which versions of kube-scheduler do so.
        times: How many answers were like this; the first is shown.
    """

    check: str
    severity: Severity
    sent: str
    got: str
    consequence: str
    versions: str = ALL
    times: int = 1

    def __str__(self) -> str:
        versions = "all versions" if self.versions == ALL else self.versions
        times = f", {self.times} times" if self.times > 1 else ""
        return (
            f"{self.check}: {self.severity} ({versions}{times})\n"
            f"  sent: {self.sent}\n"
            f"  got: {self.got}\n"
            f"  kube-scheduler {self.consequence}\n"
            f"  see {DOCS}#{section(self.check)}"
        )


def section(check: str) -> str:
    """Return the section of the documentation that has a check."""
    kind = check.partition("-")[0]
    return "recorded-traffic" if kind == "recorded" else kind


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings of one check with one entry for each consequence, the worst first."""
    first: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        key = finding.severity, finding.consequence, finding.versions
        known = first.get(key)
        first[key] = replace(known, times=known.times + 1) if known else finding
    order = list(Severity)
    return sorted(first.values(), key=lambda each: order.index(each.severity))


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
