"""Runs the checks, and keeps what pytest reports about each."""

import re
import warnings
from dataclasses import dataclass, field

import pytest

from cli.conformance.kit import Kit
from cli.conformance.requests import Requests


@dataclass
class Report:
    """A plugin for pytest.

    Attributes:
        code: The exit code.
        failed: Why checks failed, by name.
        warned: What was warned of.
        skipped: The checks that did not run.
    """

    code: int = -1
    failed: dict[str, str] = field(default_factory=dict)
    warned: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what failed and what was skipped."""
        if report.skipped:
            self.skipped.add(name_of(report.nodeid))
        elif report.failed:
            self.failed[name_of(report.nodeid)] = report.longreprtext

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, nodeid: str
    ) -> None:
        """Keep a warning."""
        self.warned[name_of(nodeid)] = str(warning_message.message)


def name_of(nodeid: str) -> str:
    """Return the name of a check, as the documentation has it."""
    test = nodeid.partition("::")[2].removeprefix("test_")
    return re.sub(r"^answers\[(.*)\]$", r"\1", test).replace("_", "-")


def checked(requests: Requests, *arguments: str, slow: bool = False) -> Report:
    """Run checks."""
    report = Report()
    report.code = Kit(requests=requests, slow=slow).run(*arguments, plugins=(report,))
    return report
