import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import pytest

from moorage.execution import alarm
from moorage.execution.alarm import BudgetExceededError, call_within

BUDGET = 0.05


def loop_for_ever() -> None:
    while True:
        pass


def sleep_for_ever() -> None:
    time.sleep(3600)


def swallow_exceptions() -> None:
    while True:
        with contextlib.suppress(Exception):  # what bad plugins do
            time.sleep(3600)


def swallow_everything_once() -> None:
    try:
        loop_for_ever()
    except BaseException:  # noqa: BLE001 - what worse plugins do
        loop_for_ever()


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        while True:
            pass
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())


def assert_comes_to_rest() -> None:
    assert not alarm.is_pending()
    while signal.getitimer(signal.ITIMER_REAL)[0]:
        pass  # it may ring once more, and interrupts nobody


@pytest.mark.parametrize(
    "function",
    [loop_for_ever, sleep_for_ever, swallow_exceptions, swallow_everything_once, block_signals],
)
def test_code_that_takes_too_long_is_interrupted(function: Callable[[], None]) -> None:
    with pytest.raises(BudgetExceededError) as interruption:
        call_within(BUDGET, function)
    functions = {entry.name for entry in interruption.traceback}
    assert function.__name__ in functions, "the traceback shows where time was spent"
    assert_comes_to_rest()


IN_C_CODE = """
import signal
import numpy
from moorage.execution.alarm import BudgetExceededError, call_within

def block_signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        pass

try:
    call_within(0.05, block_signals)
except BudgetExceededError:
    print("interrupted")
"""


def test_code_is_interrupted_whose_signal_a_thread_of_numpy_takes() -> None:
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "2",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", IN_C_CODE]
    printed = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True)
    assert printed.stdout == b"interrupted\n"


def test_code_that_takes_the_handler_for_itself_spoils_no_later_alarm() -> None:
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    with pytest.raises(BudgetExceededError):
        call_within(BUDGET, loop_for_ever)


def test_a_call_runs_no_other_code_in_python() -> None:
    files: set[str] = set()

    def note(frame: FrameType, _event: str, _arg: object) -> None:
        files.add(frame.f_code.co_filename)

    call_within(BUDGET, divmod, 7, 2)  # the first one of a process starts a thread
    before = sys.getprofile()
    gc.disable()  # what others left may be closed with a warning
    sys.setprofile(note)
    try:
        call_within(BUDGET, divmod, 7, 2)
    finally:
        sys.setprofile(before)
        gc.enable()
    assert files == {alarm.__file__, __file__}, "signal.getsignal alone takes as long as a plugin"


def test_an_alarm_never_outlives_its_call_even_if_it_rings_at_the_very_end() -> None:
    def spend(rounds: int) -> None:
        for _ in range(rounds):
            pass

    rang = 0
    for attempt in range(3000):
        try:
            call_within(1e-6 * (1 + attempt % 40), spend, attempt % 97)
        except BudgetExceededError:
            rang += 1
        assert not alarm.is_pending()
    assert rang > 0
    assert_comes_to_rest()


def test_a_call_leaves_a_timer_alone_that_rings_early_enough() -> None:
    call_within(10, divmod, 7, 2)
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    call_within(20, divmod, 7, 2)
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < left


@pytest.mark.parametrize("before", [BUDGET / 2, 3600.0])
def test_a_call_is_interrupted_in_its_time_whatever_the_timer_was_set_for(before: float) -> None:
    call_within(before, divmod, 7, 2)
    start = time.perf_counter()
    with pytest.raises(BudgetExceededError):
        call_within(BUDGET, loop_for_ever)
    assert time.perf_counter() - start >= BUDGET


def test_a_timer_that_somebody_stopped_is_missed_no_longer_than_it_was_set_for() -> None:
    call_within(BUDGET, divmod, 7, 2)
    signal.setitimer(signal.ITIMER_REAL, 0)
    end = time.perf_counter() + BUDGET
    while time.perf_counter() < end:
        pass
    with pytest.raises(BudgetExceededError):
        call_within(BUDGET, loop_for_ever)


def test_outside_the_main_thread_there_is_no_limit() -> None:
    results: list[float] = []
    thread = threading.Thread(target=lambda: results.append(call_within(1e-6, sum, range(1000))))
    thread.start()
    thread.join(20)
    assert results == [499_500]
