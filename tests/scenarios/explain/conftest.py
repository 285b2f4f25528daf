"""Prints for how many outcomes the first line of `moorage explain` named the true cause."""

import pytest

EXPLAINED = "outcomes that explain names"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = [
        int(value)
        for report in terminalreporter.stats.get("passed", ())
        for name, value in (report.user_properties if report.when == "call" else ())
        if name == EXPLAINED
    ]
    if counts:
        terminalreporter.write_line(f"{EXPLAINED} by their true cause: {sum(counts)}")
