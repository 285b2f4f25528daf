"""What plugins leave running in threads is ended, and what others do there is not."""

import ctypes
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pytest

from moorage.execution import EnabledPlugin
from moorage.execution.alarm import BudgetExceededError
from moorage_host.plugins.threads import (
    BUSY,
    LONGEST_SECONDS,
    MOST_TRIES,
    LeftThreads,
    processor_seconds,
)
from tests.passing import Passes

LOOKS = int(LONGEST_SECONDS) + 1
"""The first look only notes what threads have taken; from then on, one look a second."""


class Leaves(Passes):
    """Its threads run functions of this module."""


@dataclass
class Looks:
    """Looks at a plugin's threads once a second, of which each takes the same share."""

    share: float = 1.0
    plugin: EnabledPlugin = field(default_factory=lambda: EnabledPlugin(plugin=Leaves()))
    now: float = 0.0

    def __post_init__(self) -> None:
        self.threads = LeftThreads(lambda: self.now, lambda _: self.now * self.share)

    def look(self, times: int, *plugins: EnabledPlugin) -> None:
        for _ in range(times):
            self.now += 1
            self.threads.look(plugins or [self.plugin])


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    told.clear()
    with ThreadPoolExecutor(1) as executor:
        yield executor
        told.append(True)


told: list[bool] = []


def _until_told() -> None:
    while not told:
        pass


def _natively(gate: threading.Lock) -> None:
    gate.acquire()


def test_a_loop_that_never_ends_is_ended_and_its_plugin_says_so(pool: ThreadPoolExecutor) -> None:
    work, looks = pool.submit(_until_told), Looks(share=BUSY + 0.01)
    looks.look(LOOKS - 1)
    assert not looks.plugin.overruns.problem
    looks.look(1)
    with pytest.raises(BudgetExceededError):
        work.result(20)
    problem = looks.plugin.overruns.problem
    assert problem.startswith("a thread that kept the processor was ended, once, the last time at")
    assert "test_threads.py" in problem
    assert not looks.plugin.overruns.refusal(("default", "innocent"))


def test_a_thread_below_the_limit_is_left_alone(pool: ThreadPoolExecutor) -> None:
    work, looks = pool.submit(_until_told), Looks(share=BUSY - 0.01)
    looks.look(10 * LOOKS)
    told.append(True)
    work.result(20)
    assert not looks.plugin.overruns.problem


def test_a_thread_that_is_no_plugin_s_goes_on(pool: ThreadPoolExecutor) -> None:
    work, looks = pool.submit(_until_told), Looks()
    looks.look(2 * LOOKS, EnabledPlugin(plugin=Passes()))
    told.append(True)
    work.result(20)


def test_a_thread_that_cannot_be_ended_is_reported_once(
    pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    gate = threading.Lock()
    gate.acquire()
    work, looks = pool.submit(_natively, gate), Looks()
    with caplog.at_level(logging.ERROR):
        looks.look(5 * LOOKS)
    assert len(caplog.records) == MOST_TRIES + 1
    assert "cannot be ended" in caplog.records[-1].message
    problem = looks.plugin.overruns.problem
    assert problem.startswith("a thread that keeps the processor cannot be ended, at test_threads")
    gate.release()
    with pytest.raises(BudgetExceededError):
        work.result(20)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(traceback, "extract_stack"), (ctypes.pythonapi, "PyThreadState_SetAsyncExc")],
)
def test_a_worker_that_has_left_the_plugin_is_not_hit(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    """It leaves once its stack is read, and at the last moment."""
    work, looks = pool.submit(_until_told), Looks()
    gate = threading.Event()
    others: list[Future[bool]] = []
    function: Callable[..., Any] = getattr(owner, name)

    def leave() -> None:
        told.append(True)
        work.result(20)
        others.append(pool.submit(gate.wait, 20))
        while "wait" not in {frame.f_code.co_name for frame in sys._current_frames().values()}:
            pass

    def stack(frame: FrameType) -> Any:
        found = function(frame)
        leave()
        return found

    def set_exception(*args: Any) -> None:
        if not others:
            leave()
        function(*args)

    monkeypatch.setattr(owner, name, stack if owner is traceback else set_exception)
    looks.look(LOOKS)
    assert others
    assert owner is not traceback or not looks.plugin.overruns.problem
    gate.set()
    assert others[0].result(20)


def test_the_processor_time_of_a_thread_is_in_seconds() -> None:
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
    taken = processor_seconds(threading.get_native_id())
    assert taken == pytest.approx(time.thread_time(), abs=0.05)
    assert processor_seconds(2**30) == 0
