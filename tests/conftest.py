"""What holds for all tests."""

import os
from collections.abc import Generator

import pytest
import structlog
from hypothesis import HealthCheck, settings

REQUIRE_ALL = "MOORAGE_REQUIRE_ALL"
"""Set to 1, a test that cannot run on this machine fails instead of being skipped."""


# A busy machine is no failure. In CI the same examples are tried each time.
settings.register_profile(
    "moorage",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("moorage")

# By default, tracebacks show all variables, which takes minutes where these are large.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        ),
    ]
)


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
