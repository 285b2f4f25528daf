"""Prints the table of renderings at the end."""

import pytest

COLUMNS = ("applied", "ready", "bound", "doctor", "denied", "unused rights")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what each rendering came to; "-" is what it did not come to."""
    rows = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            values = dict(report.user_properties)
            if report.when == "call" and "applied" in values:
                name = report.nodeid.partition("[")[2].rpartition("]")[0]
                rows[name] = [str(values.get(column, "-")) for column in COLUMNS]
    if rows:
        width = max(map(len, rows))
        terminalreporter.section("renderings")
        terminalreporter.write_line("  ".join([f"{'':{width}}", *COLUMNS]))
        for name, cells in rows.items():
            texts = (f"{c:>{len(head)}}" for c, head in zip(cells, COLUMNS, strict=True))
            terminalreporter.write_line("  ".join([f"{name:{width}}", *texts]))
