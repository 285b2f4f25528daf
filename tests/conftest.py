"""What holds for all tests."""

import os
from collections.abc import Generator

import pytest

REQUIRE_ALL = "MOORAGE_REQUIRE_ALL"
"""Set to 1, a test that cannot run on this machine fails instead of being skipped."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn skips into failures where all tests are required to run."""
    report = yield
    if report.skipped and os.environ.get(REQUIRE_ALL) == "1" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, but {REQUIRE_ALL}=1: {report.longrepr}"
    return report
