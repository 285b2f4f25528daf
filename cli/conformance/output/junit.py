"""A report for CI systems."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from cli.conformance.findings import Outcome, Severity
from cli.conformance.running import Report


def junit(reports: Sequence[Report]) -> str:
    """Return a test suite for each extender, with a test case for each check.

    Style is no failure.
    """
    suites = Element("testsuites")
    suites.extend(map(_suite, reports))
    indent(suites)
    return tostring(suites, encoding="unicode", xml_declaration=True)


def _suite(report: Report) -> Element:
    cases = [_case(outcome) for outcome in report.outcomes]
    suite = Element(
        "testsuite",
        name=f"moorage conformance {report.url}",
        tests=str(len(cases)),
        failures=str(sum(1 for case in cases if case.find("failure") is not None)),
        skipped=str(sum(1 for case in cases if case.find("skipped") is not None)),
    )
    suite.extend(cases)
    return suite


def _case(outcome: Outcome) -> Element:
    case = Element("testcase", classname=f"extender.{outcome.verb or 'all'}", name=outcome.check)
    if outcome.skipped:
        SubElement(case, "skipped", message=outcome.skipped)
    style = []
    for finding in outcome.findings:
        text = _printable(
            f"sent: {finding.sent}\ngot: {finding.got}\n"
            f"kube-scheduler {finding.versions}: {finding.consequence}\nsee {outcome.docs}"
        )
        if finding.severity is Severity.STYLE:
            style.append(text)
        else:
            SubElement(
                case, "failure", message=finding.consequence, type=finding.severity
            ).text = text
    if style:
        SubElement(case, "system-out").text = "\n\n".join(style)
    return case


def _printable(text: str) -> str:
    """Return a text without the characters that XML cannot have."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
