"""Background work of plugins: it goes on after failures, shows them, and ends with the plugin."""

import asyncio
import inspect
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage import Arguments, Node, Nodes, Pod, Preparation, ScorePlugin
from moorage.execution import EnabledPlugin, background, start_plugin, stop_plugin
from moorage.testing import make_node, make_pod, run_score, running
from tests.passing import Passes


class Polls(Passes):
    """Reads numbers from a file, as often as it can."""

    class Args(Arguments):
        file: str

    async def start(self) -> None:
        self.numbers: list[float] = []
        self.background(self._poll)

    async def _poll(self) -> None:
        while True:
            self.numbers = json.loads(Path(self.args.file).read_text())  # noqa: ASYNC240
            await asyncio.sleep(0.001)


LINE = inspect.getsourcelines(Polls._poll)[1] + 2


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(background, "LONGEST_WAIT", 0.002)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - plugins have no events for tests
            await asyncio.sleep(0)


@asynccontextmanager
async def started(plugin: Passes, **more: Any) -> AsyncIterator[EnabledPlugin]:
    enabled = EnabledPlugin(plugin=plugin, **more)
    await start_plugin(enabled)
    yield enabled
    await stop_plugin(enabled)


async def test_work_goes_on_after_a_failure_and_shows_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "numbers.json"
    file.write_text("[1]")
    polls, counted = Polls(Polls.Args(file=str(file))), list[str]()
    enabled = EnabledPlugin(plugin=polls)
    enabled.background.on_failure = counted.append
    await start_plugin(enabled)
    await until(lambda: polls.numbers == [1])
    assert enabled.background.problem == ""
    file.write_text("[1, ")
    await until(lambda: len(counted) == 3)
    problem = enabled.background.problem
    file.write_text("[2]")
    await until(lambda: polls.numbers == [2])
    await stop_plugin(enabled)
    assert set(counted) == {"Polls"}
    assert problem.startswith("_poll failed 3 times, 0s ago: JSONDecodeError: Expecting value: ")
    assert problem.endswith(f"test_background.py:{LINE})")
    (record,) = (r for r in caplog.records if r.name == "Polls")
    assert record.levelno == logging.WARNING
    assert "_poll failed: JSONDecodeError" in caplog.text
    traceback = caplog.text.partition("Traceback")[2]
    assert "json.loads" in traceback
    assert "alarm.py" not in traceback


async def test_work_ends_with_the_plugin_and_before_stop() -> None:
    events: list[str] = []

    class Works(Passes):
        async def start(self) -> None:
            self.background(self._wait)

        async def stop(self) -> None:
            events.append("stopped")

        async def _wait(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                events.append("work ended")

    async with running(Works()):
        assert events == []
    assert events == ["work ended", "stopped"]


async def test_work_that_blocks_is_interrupted_and_restarted() -> None:
    class Blocks(Passes):
        async def start(self) -> None:
            self.tries = 0
            self.background(self._block)

        async def _block(self) -> None:
            self.tries += 1
            if self.tries == 1:
                time.sleep(3600)  # noqa: ASYNC251 - what bad plugins do

    plugin = Blocks()
    async with started(plugin, time_budget=0.05) as enabled:
        await until(lambda: enabled.background.problem != "")
        problem = enabled.background.problem
        await until(lambda: plugin.tries == 2)
        await until(lambda: enabled.background.problem == "")  # it has returned
    assert ": it took longer than its time budget of 0.05 s (tests/" in problem


async def test_work_is_an_async_function_of_a_plugin_that_runs() -> None:
    plugin = Passes()
    with pytest.raises(RuntimeError, match="Passes does not run, so nothing can run in its back"):
        plugin.background(asyncio.Event().wait)  # type: ignore[arg-type]
    async with running(plugin):
        with pytest.raises(TypeError, match=r"must be an async function, such as self\._poll, not"):
            plugin.background(print)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"is not called, but named: self\.background\(self\._"):
            plugin.background(asyncio.sleep(0))  # type: ignore[arg-type]


async def test_the_number_of_works_has_a_bound() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    plugin = Passes()
    async with running(plugin):
        for _ in range(background.MAX_WORKS):
            plugin.background(wait)
        with pytest.raises(RuntimeError, match="Passes has 100 functions in the back"):
            plugin.background(wait)


class KeepsState(ScorePlugin):
    """Scores by what `start` and the background work left."""

    async def start(self) -> None:
        self.base = 7.0
        self.background(self._work)

    async def stop(self) -> None:
        self.base = -1

    async def _work(self) -> None:
        self.base += 1

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        self.base += 10
        return None

    def score_node(self, pod: Pod, node: Node) -> float:
        return self.base


async def test_a_plugin_that_runs_is_not_started_again() -> None:
    plugin = KeepsState()
    async with running(plugin):
        for expected in (18, 28):
            scores = await asyncio.to_thread(run_score, plugin, make_pod(), make_node("n"))
            assert scores == {"n": expected}


async def test_a_row_of_failures_ends_when_work_has_run_for_longer_than_the_wait_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "LONGEST_WAIT", 3600.0)
    monkeypatch.setattr(background, "STEADY_SECONDS", 0.005)

    class FailsNowAndThen(Passes):
        async def start(self) -> None:
            self.failures = 0
            self.background(self._work)

        async def _work(self) -> None:
            await asyncio.sleep(0.01)
            self.failures += 1
            raise OSError("not now")

    plugin = FailsNowAndThen()
    async with started(plugin) as enabled:
        await until(lambda: plugin.failures == 30)  # one row of these would take a year
        assert enabled.background.problem.startswith("_work failed once, 0s ago: OSError: not now")


class PollsInTurns(Passes):
    """Fails at every second read."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def _read(self) -> None:
        self.calls += 1
        if self.calls % 2:
            raise OSError("not now")

    async def _wait_and_read(self) -> None:
        await asyncio.sleep(0)
        self._read()


@pytest.mark.parametrize("read", ["_read", "_wait_and_read"])
async def test_each_poll_counts_by_itself(read: str) -> None:
    plugin, counted = PollsInTurns(), list[str]()
    async with started(plugin) as enabled:
        enabled.background.on_failure = lambda _: counted.append(enabled.background.problem)
        plugin.poll(getattr(plugin, read), 0.01)
        await until(lambda: plugin.calls >= 20)
        await until(lambda: enabled.background.problem == "")  # the next that returned
    assert len(counted) >= 10
    for problem in counted:
        assert problem.startswith(f"{read} failed once, 0s ago: OSError: not now (tests/")


async def test_polls_that_fail_in_a_row_are_counted_and_the_next_comes_within_the_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "FIRST_WAIT", 3600.0)
    monkeypatch.setattr(background, "LONGEST_WAIT", 3600.0)

    def fail() -> None:
        raise OSError("no server")

    plugin, counted = Passes(), list[str]()
    async with started(plugin) as enabled:
        enabled.background.on_failure = counted.append
        plugin.poll(fail, 0.001)
        await until(lambda: len(counted) == 20)
        assert enabled.background.problem.startswith("fail failed 20 times, 0s ago: OSError: no")


async def test_a_poll_is_a_function_and_a_time() -> None:
    plugin = Passes()
    with pytest.raises(RuntimeError, match="Passes does not run, so nothing can run in its back"):
        plugin.poll(print, 1)
    async with running(plugin):
        with pytest.raises(TypeError, match=r"must be a function, such as self\._poll, not 1"):
            plugin.poll(1, print)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"is not called, but named: self\.poll\(self\._poll"):
            plugin.poll(asyncio.sleep(0), 60)  # type: ignore[arg-type]
        for wrong in (0, -1, float("inf"), float("nan")):
            with pytest.raises(ValueError, match=f"interval {wrong}"):
                plugin.poll(print, wrong)
