"""What holds for all tests."""

import asyncio
import gc
import logging
import os
import signal
import zlib
from collections import Counter
from collections.abc import Generator

import pytest
import structlog
from hypothesis import HealthCheck, settings

import moorage_host.rpc  # noqa: F401 - it has settings of gRPC, which must come before gRPC

pytest_plugins = ("tests.leaks", "tests.limits", "tests.workers")

# A shell ignores SIGINT for what a script runs in the background, nohup ignores SIGHUP, and so
# would programs under test.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# gRPC serves all event loops of a process. What comes for one that a former test has closed is
# reported in the log of whichever test runs.
logging.getLogger("asyncio").addFilter(
    lambda record: "PollerCompletionQueue._handle_events" not in record.getMessage()
)

REQUIRE_ALL = "MOORAGE_REQUIRE_ALL"
"""Set to 1, a test that cannot run on this machine fails instead of being skipped."""


EXAMPLES = int(os.environ.get("MOORAGE_EXAMPLES", "25"))
"""How many examples a property test tries that does not say it itself."""

# A busy machine is no failure. In CI the same examples are tried each time.
settings.register_profile(
    "moorage",
    max_examples=EXAMPLES,
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


SHARED = ("layouts", "programs", "shared_world", "stack")
"""Session fixtures that take long to set up."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep on one worker of pytest what shares a fixture or a file; long groups come first.

    Files come in a mixed order: side by side with those that wait run those that compute.
    """
    groups = {item: _group(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: (groups[item].endswith(".py"), _number(groups[item])))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let no garbage collection look at what thousands of collected tests consist of.

    Nor do many look at all that was made since: that took a tenth of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(700, 10, 100)
        gc.enable()


def _group(item: pytest.Item) -> str:
    file = str(item.path.relative_to(item.config.rootpath))
    if isinstance(item, pytest.Function):
        params = item.callspec.params if hasattr(item, "callspec") else {}
        for name in SHARED:
            if name in item.fixturenames:
                shared = str(params.get(name, name))
                # The longest: there are several of it, side by side.
                several = {"embedded": 3, "real": 2}.get(shared, 1)
                return f"{shared} {_number(file) % several}" if several > 1 else shared
    return file


def _number(name: str) -> int:
    return zlib.crc32(name.encode())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Take the group out of a test's name, for reports and `--last-failed`."""
    name, separator, group = report.nodeid.rpartition("@")
    if separator and "]" not in group and "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = name


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Collect the seconds for which `asyncio.sleep` is called, in this process."""
    asked: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float, result: object = None) -> object:
        asked.append(seconds)
        return await sleep(seconds, result)

    monkeypatch.setattr(asyncio, "sleep", noted)
    return asked


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each reason for which tests were skipped."""
    skipped = [
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    ]
    for reason, count in Counter(skipped).most_common():
        terminalreporter.write_line(f"{reason}: {count} tests skipped")


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
