"""Logs are never in the way: not a full disk, an unread pipe, or a thousand bad calls."""

import asyncio
import fcntl
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
import structlog

from moorage.v1.binder_pb2 import BinderServiceBarrierRequest
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.process.logs import LogLimits, Repeats, fitted
from tests.forked import Running
from tests.host.rpc.support import run

PROGRAM = """
import logging, warnings, structlog
from moorage_host.process.logs import configure_logging
configure_logging({level!r}, {form!r})
def fail(secret):
    raise ValueError("first line\\nsecond line")
with structlog.contextvars.bound_contextvars(rpc="a/b"):
    log = structlog.get_logger()
    log.debug("Detail")
    log.info("Fact", count=3, path=object)
    logging.getLogger("lib").warning("Of a library: %s", "x")
    warnings.warn("careful")
    try:
        fail("do not show")
    except ValueError:
        log.exception("Failure")
        logging.getLogger("lib").exception("Failure of a library")
"""


async def lines(level: str, form: str) -> list[str]:
    process = await run(sys.executable, "-c", PROGRAM.format(level=level, form=form))
    output, errors = await process.communicate()
    assert (process.returncode, output) == (0, b"")
    return errors.decode().splitlines()


@pytest.mark.parametrize("form", ["json", "auto"])
async def test_every_event_is_one_line_of_json_whoever_logs_it(form: str) -> None:
    written = await lines("info", form)
    check_tracebacks("\n".join(written))
    events = [json.loads(line) for line in written]
    assert [e["level"] for e in events] == ["info", "warning", "warning", "error", "error"]
    assert {e["rpc"] for e in events} == {"a/b"}
    assert all(e["timestamp"].endswith("Z") for e in events)
    fact, library, warned, failure, library_failure = events
    assert (fact["event"], fact["count"]) == ("Fact", 3)
    assert (library["event"], library["logger"]) == ("Of a library: x", "lib")
    assert "careful" in warned["event"]
    assert "second line" in failure["exception"]
    assert "second line" in library_failure["exception"]


async def test_text_is_for_people_and_shows_no_values_of_variables_either() -> None:
    written = await lines("info", "text")
    assert "Fact" in written[0]
    assert "count=3" in written[0]
    check_tracebacks("\n".join(written))


def check_tracebacks(text: str) -> None:
    assert "second line" in text
    assert "do not show'" not in text.replace('fail("do not show")', "")


async def test_the_level_is_the_least_that_is_shown() -> None:
    assert [json.loads(line)["event"] for line in await lines("error", "json")] == [
        "Failure",
        "Failure of a library",
    ]
    assert json.loads((await lines("debug", "json"))[0])["event"] == "Detail"


FORGER = r"""
import structlog
from moorage_host.process.logs import configure_logging
configure_logging("info", "text")
forged = "\n2026-01-01T00:00:00Z [info     ] All is well\x1b[2J\x00\u202e"
try:
    raise ValueError(forged)
except ValueError:
    structlog.get_logger().exception("Failure", text=forged)
structlog.get_logger().info("printed" + forged)
named = {"\x1b[2J": [forged]}
structlog.get_logger().info("Fields", plain="\x1b[2J\u202e", lone="\ud800\x9b", **named)
"""


async def test_no_text_can_look_like_another_line_or_change_the_terminal() -> None:
    process = await run(sys.executable, "-c", FORGER)
    _, errors = await process.communicate()
    output = errors.decode()
    assert output.count("All is well") == 4
    assert "log_problem" not in output
    assert all(character.isprintable() for character in output.replace("\n", ""))
    assert not [line for line in output.splitlines() if line.startswith("2026-01-01")]


StartTiny = Callable[..., Awaitable[Running]]
CHATTY = ("--log-repeats=100000", "--log-traceback-interval=0s")
NO_DELAY = "--shutdown-delay=0s"


async def call_badly(address: str, times: int) -> None:
    """Make calls that fail for a bug, each with a traceback in the log."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = BinderServiceStub(channel)
        for _ in range(times):
            with pytest.raises(grpc.aio.AioRpcError, match="internal error"):
                await stub.Barrier(BinderServiceBarrierRequest(), timeout=50)


async def dropped(admin: str, cause: str) -> float:
    """Return how many lines a process did not log, after it has answered /livez."""
    timeout = aiohttp.ClientTimeout(total=5)
    async with aiohttp.ClientSession(f"http://{admin}", timeout=timeout) as session:
        async with session.get("/livez") as answer:
            assert answer.status == 200
        async with session.get("/metrics") as answer:
            lines = (await answer.text()).splitlines()
    start = f'moorage_log_dropped_total{{cause="{cause}"}} '
    return next(float(line.removeprefix(start)) for line in lines if line.startswith(start))


async def ends_in_order(tiny: Running) -> bool:
    tiny.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(20):
        return await tiny.process.wait() == 0


@pytest.fixture
def unread() -> Iterator[int]:
    """A pipe that takes a few lines, and that nobody reads."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    yield writing
    os.close(reading)
    os.close(writing)


@pytest.fixture
def full_disk() -> Iterator[int]:
    with Path("/dev/full").open("wb", buffering=0) as file:
        yield file.fileno()


@pytest.mark.parametrize(("errors", "cause"), [("unread", "queue"), ("full_disk", "write")])
async def test_a_log_that_takes_no_lines_stops_nothing(
    start_tiny: StartTiny, request: pytest.FixtureRequest, errors: str, cause: str
) -> None:
    file = request.getfixturevalue(errors)
    tiny = await start_tiny(NO_DELAY, "--log-queue=10", *CHATTY, errors=file)
    serving = await tiny.event()
    await call_badly(serving["grpc"], 100)
    assert await dropped(serving["admin"], cause) > 50
    assert await ends_in_order(tiny)


async def test_a_bad_call_costs_at_most_one_kilobyte_of_log(
    start_tiny: StartTiny, tmp_path: Path
) -> None:
    with (tmp_path / "log").open("wb") as log:
        tiny = await start_tiny(NO_DELAY, errors=log.fileno())
        serving = await tiny.event()
        before = log.tell()
        await call_badly(serving["grpc"], 200)
        assert await dropped(serving["admin"], "repeated") > 100
        assert await ends_in_order(tiny)
    lines = (tmp_path / "log").read_bytes()[before:].splitlines()
    events = [json.loads(line) for line in lines]
    failures = [each for each in events if each["event"] == "A call failed unexpectedly"]
    assert len([each for each in failures if "Traceback" in each.get("exception", "")]) == 1
    assert {each.get("error") for each in failures[1:]} == {"NotImplementedError"}
    assert sum(map(len, lines)) <= 200 * 1024


class TestRepeats:
    now = 0.0

    def repeats(self, **limits: Any) -> Repeats:
        return Repeats(LogLimits(**limits), clock=lambda: self.now)

    def test_an_event_is_logged_a_few_times_and_then_once_in_a_while_with_a_count(self) -> None:
        repeats = self.repeats(repeats=2, repeat_interval=10)
        assert [repeats.admit("a call failed") for _ in range(5)] == [0, 0, None, None, None]
        assert repeats.admit("another") == 0
        self.now = 10
        assert [repeats.admit("a call failed") for _ in range(2)] == [3, None]
        self.now = 20
        assert repeats.admit("a call failed") == 1

    def test_a_traceback_is_shown_once_in_a_while_for_each_place(self) -> None:
        repeats = self.repeats(traceback_interval=60)
        assert repeats.admit_traceback("failed", "a.py", 1)
        assert not repeats.admit_traceback("failed", "a.py", 1)
        assert repeats.admit_traceback("failed", "a.py", 2)
        self.now = 60
        assert repeats.admit_traceback("failed", "a.py", 1)

    def test_what_is_counted_is_bounded(self) -> None:
        repeats = self.repeats()
        for number in range(5000):
            repeats.admit(f"event {number}")
            repeats.admit_traceback("failed", f"{number}.py", 1)
        assert len(repeats._buckets) + len(repeats._tracebacks) <= 2048


@pytest.mark.parametrize(
    "fields",
    [
        {"event": "bad", "problem": "x" * 100_000},
        {"event": "bad", "problem": "\u4e16" * 100_000, "path": "\n" * 5000},
        {"event": "x" * 5000},
        {"event": "bad", "names": [f"node-{number}" for number in range(5000)]},
        {"event": "bad", **{f"field{number}": number for number in range(500)}},
        {"event": "bad", "cause": ValueError("x" * 5000)},
    ],
    ids=["long", "escaped", "sentence", "list", "many", "object"],
)
def test_lines_are_cut_and_stay_json(fields: dict[str, Any]) -> None:
    render = fitted(structlog.processors.JSONRenderer(default=str), LogLimits())
    line = render(None, "warning", {**fields, "level": "warning", "timestamp": "2026-01-01"})
    assert 100 < len(line.encode()) <= 1024 or len(fields) > 100
    event = json.loads(line)
    assert event["event"].removesuffix("...") in fields["event"]
    assert event["level"] == "warning"


def test_a_traceback_is_cut_in_the_middle() -> None:
    render = fitted(structlog.processors.JSONRenderer(default=str), LogLimits())
    text = "Traceback\n" + "  frame\n" * 100_000 + "ValueError: in the end"
    line = render(None, "error", {"event": "bad", "exception": text})
    assert 4096 < len(line) <= 8192
    event = json.loads(line)
    assert event["exception"].startswith("Traceback\n")
    assert event["exception"].endswith("ValueError: in the end")


FLOOD = """
import logging, structlog
from moorage_host.process.logs import configure_logging
from moorage_host.process.logs import LogLimits
configure_logging("info", "{form}", LogLimits(repeats=1, repeat_interval=1000))
class Nameless:
    def __str__(self): raise RuntimeError("no text")
    __repr__ = __str__
structlog.get_logger().warning("Odd field", value=Nameless())
logging.getLogger("lib").warning("Two of %s: %s", 1)
logging.getLogger("lib").warning({{"no": "sentence"}})
for number in range(3):
    structlog.get_logger().warning("Again", number=number)
    logging.getLogger("lib").error("Again %d", number)
    structlog.get_logger().info("Fact", number=number)
"""


@pytest.mark.parametrize("form", ["json", "text"])
async def test_whatever_is_logged_never_fails(form: str) -> None:
    process = await run(sys.executable, "-c", FLOOD.format(form=form))
    output, errors = await process.communicate()
    assert (process.returncode, output) == (0, b"")
    text = errors.decode()
    assert "Traceback" not in text
    assert "Odd field" in text
    assert "no': 'sentence" in text
    assert (text.count("Again"), text.count("Fact")) == (2, 3)
