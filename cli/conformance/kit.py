"""Runs the checks with pytest: fixtures, severities, what is skipped, and a summary."""

import os
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cli.conformance.findings import Finding, Severity, merged
from cli.conformance.probe import Probe
from cli.conformance.requests import BEST_SCORE, RECORDED_NODES, Requests
from sandbox.scheduler.config import VERBS, ExtenderConfig

CHECKS = Path(__file__).with_name("checks.py")

STYLE = "style"

KIT = pytest.StashKey["Kit"]()


@dataclass(kw_only=True)
class Kit:
    """A plugin for pytest: what is checked, and then what was found.

    Attributes:
        extenders: The entries in kube-scheduler's configuration.
        nodes: The nodes that requests are about.
        scheduler_name: That of all pods; "" leaves it as it was recorded.
        best_score: The highest score that the extenders document.
        slow: Whether checks that take minutes run too.
        found: What was found, by check; checks that found nothing are left out.
        skipped: Why checks did not run.
        sent: How many requests were sent, by verb.
    """

    extenders: Sequence[ExtenderConfig]
    nodes: tuple[str, ...] = RECORDED_NODES
    scheduler_name: str = ""
    best_score: int = BEST_SCORE
    slow: bool = False
    found: dict[str, list[Finding]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)

    def run(self, *arguments: str) -> int:
        """Run the checks; return the exit code: 0, 1 if kube-scheduler would be hurt, else 2.

        *arguments* are pytest's. Neither its configuration nor other plugins of whoever runs this
        take part.
        """
        alone = ("-c", os.devnull, f"--rootdir={CHECKS.parent}", "--disable-plugin-autoload")
        # To look for exceptions in destructors, the latter collects garbage ten times.
        without = ("-p", "no:cacheprovider", "-p", "no:unraisableexception")
        shown = ("--no-header", "--capture=no", "--import-mode=importlib")
        code = pytest.main([str(CHECKS), *alone, *without, *shown, *arguments], plugins=[self])
        return int(code) if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else 2

    def pytest_configure(self, config: pytest.Config) -> None:
        """Let the fixtures find this."""
        config.stash[KIT] = self

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each check once for each extender."""
        if "probe" in metafunc.fixturenames and len(self.extenders) > 1:
            ids = [each.url_prefix for each in self.extenders]
            metafunc.parametrize("probe", self.extenders, indirect=True, ids=ids, scope="session")

    def requests(self, extender: ExtenderConfig) -> Requests:
        """Return what writes requests for an extender."""
        return Requests(
            config=extender,
            nodes=self.nodes,
            scheduler_name=self.scheduler_name,
            best_score=self.best_score,
        )

    def begin(self, probe: Probe, check: str) -> None:
        """Begin a check; skip it if it does not concern the extender, or takes long."""
        probe.check = check
        verb = next((verb for verb in VERBS if check.startswith(f"{verb}-")), None)
        if verb and not probe.offers(verb):
            why = "asked for with --bind only" if verb == "bind" else f"no {verb} verb"
        elif check == "http-not-managed" and not probe.requests.resource:
            why = "no managedResources"
        elif check == "http-idle" and not self.slow:
            why = "asked for with --slow only"
        else:
            return
        self.skipped[check] = why
        pytest.skip(why)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Function) -> Generator[None, object, object]:
        """Fail a check with what it found; style is no failure."""
        result = yield
        probe = item.funcargs.get("probe")
        if not isinstance(probe, Probe):  # a test of somebody else
            return result
        found = merged(probe.findings.pop(probe.check, []))
        if found:
            self.found.setdefault(probe.check, []).extend(found)
            item.user_properties.append(("severity", str(found[0].severity)))
            text = "\n".join(map(str, found))
            if found[0].severity is not Severity.STYLE:
                pytest.fail(text, pytrace=False)
            item.add_report_section("call", STYLE, text)
        return result

    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, Mapping[str, bool]]] | None:
        """Show the severity in place of "passed" and "failed"."""
        severity = dict(getattr(report, "user_properties", ())).get("severity")
        if report.when != "call" or severity is None:
            return None
        if severity == Severity.STYLE:
            return STYLE, "y", ("STYLE", {"yellow": True})
        return "failed", "F", str(severity).upper()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what is style, and the sums."""
        for report in terminalreporter.getreports(STYLE):
            terminalreporter.write_line("")
            terminalreporter.write_line(dict(report.sections)[f"Captured {STYLE} call"])
        for each in self.extenders:
            mode = "names" if each.node_cache_capable else "whole nodes"
            terminalreporter.write_line(f"{each.url_prefix}: with {mode}")
        counts = Counter(found[0].severity for found in self.found.values())
        sums = [f"{counts[severity]} {severity}" for severity in Severity if counts[severity]]
        requests = ", ".join(f"{count} {verb}" for verb, count in self.sent.items())
        terminalreporter.write_line(f"{', '.join(sums) or 'nothing found'}; sent {requests}")


def check_of(item: pytest.Function) -> str:
    """Return the name of the check that a test is."""
    parameters: Mapping[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    if "version" in parameters:
        return f"recorded-{parameters['version']}"
    if "rule" in parameters:
        return str(parameters["rule"])
    return str(item.function.__name__).removeprefix("test_").replace("_", "-")
