"""What is reported: findings, and how severe they are."""

from enum import StrEnum

import msgspec

ALL = "all"
"""Every version of kube-scheduler from 1.30 on does this."""

UP_TO_GO_1_26 = "1.30 to 1.37"
"""Versions that are built with Go 1.26 or older."""

SHOWN = 300
"""Characters of a request or an answer in a finding."""


class Severity(StrEnum):
    """What a finding does to scheduling, the worst first."""

    BREAKS = "breaks scheduling"
    WRONG = "wrong placement"
    IGNORED = "ignored silently"
    STYLE = "style"


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
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


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a check found.

    Attributes:
        check: Its name.
        verb: The verb that it is about, "" for all.
        about: What it looks for.
        docs: Where it is explained.
        skipped: Why it did not run, "" if it did.
        findings: What it found.
    """

    check: str
    verb: str
    about: str
    docs: str
    skipped: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def severity(self) -> Severity | None:
        """The worst severity, None without a finding."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in Severity if severity in found), None)


def merged(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return findings of one check with one entry for each consequence."""
    first: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        key = finding.severity, finding.consequence, finding.versions
        known = first.get(key)
        first[key] = (
            msgspec.structs.replace(known, times=known.times + finding.times) if known else finding
        )
    order = list(Severity)
    return tuple(sorted(first.values(), key=lambda each: order.index(each.severity)))


def shortened(text: str, limit: int = SHOWN) -> str:
    """Return a text of at most *limit* characters."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"
