"""A report for people."""

from collections.abc import Iterator

from cli.conformance.findings import ALL, Finding, Outcome, Severity
from cli.conformance.running import Report
from cli.shared.screen import Screen


def show_table(report: Report) -> None:
    """Write a line for each check, then each finding, then the sum."""
    screen = Screen()
    screen.sentence(_what(report), style="bold")
    rows = [(o.check, result(o), o.about) for o in report.outcomes]
    screen.table(("CHECK", "RESULT", "ABOUT"), rows)
    for outcome in report.outcomes:
        for finding in outcome.findings:
            screen.write("")
            screen.sentence(_title(finding), style="bold")
            for line in _evidence(outcome, finding):
                screen.sentence(line)
    screen.write("")
    screen.sentence(total(report), style="bold")


def result(outcome: Outcome) -> str:
    """Return the word for what a check found."""
    if outcome.severity is not None:
        return str(outcome.severity)
    return "skipped" if outcome.skipped else "ok"


def total(report: Report) -> str:
    """Return the sum of all checks in one line."""
    results = [result(outcome) for outcome in report.outcomes]
    counts = [f"{results.count(word)} {word}" for word in ("ok", *Severity, "skipped")]
    shown = [count for count in counts if not count.startswith("0 ")]
    return f"{len(results)} checks: {', '.join(shown)}"


def _what(report: Report) -> str:
    requests = ", ".join(f"{count} {verb}" for verb, count in report.sent.items())
    mode = "names" if report.node_cache_capable else "whole nodes"
    return f"{report.url}: sent {requests or 'nothing'}, with {mode}"


def _title(finding: Finding) -> str:
    versions = "all versions" if finding.versions == ALL else finding.versions
    times = f", {finding.times} times" if finding.times > 1 else ""
    return f"{finding.check}: {finding.severity} ({versions}{times})"


def _evidence(outcome: Outcome, finding: Finding) -> Iterator[str]:
    yield f"  sent: {finding.sent}"
    yield f"  got: {finding.got}"
    yield f"  kube-scheduler {finding.consequence}"
    yield f"  see {outcome.docs}"
