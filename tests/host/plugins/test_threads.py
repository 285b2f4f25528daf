"""What plugins leave running in threads is ended, and what others do there is not."""

import threading
from contextlib import suppress

import pytest

from moorage.execution import EnabledPlugin
from moorage_host.plugins.threads import LeftThreads
from tests.passing import Passes

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


class Leaves(Passes):
    """Begins work that never ends."""

    def begin(self) -> threading.Thread:
        thread = threading.Thread(target=_for_ever, daemon=True)
        thread.start()
        return thread


class Resists(Passes):
    """The same, and it takes any exception for a passing one."""

    def begin(self) -> threading.Thread:
        thread = threading.Thread(target=_until_told, daemon=True)
        thread.start()
        return thread


TOLD = threading.Event()


def _for_ever() -> None:
    while True:
        pass


def _until_told() -> None:
    while not TOLD.is_set():
        with suppress(BaseException):
            _for_ever()


def ended(thread: threading.Thread, plugins: list[EnabledPlugin], looks: int) -> bool:
    threads = LeftThreads(longest=0.4, busy=0.01)
    for _ in range(looks):
        threads.look(plugins)
        thread.join(0.11)
        if not thread.is_alive():
            return True
    return False


def test_a_thread_that_never_ends_is_ended_and_its_plugin_says_so() -> None:
    enabled = EnabledPlugin(plugin=Leaves())
    assert ended(Leaves().begin(), [enabled], 200)
    problem = enabled.overruns.problem
    assert problem.startswith("a thread that kept the processor was ended, once, the last time at")
    assert "test_threads.py" in problem
    assert not enabled.overruns.refusal(("default", "innocent"))


def test_a_thread_that_is_no_plugin_s_goes_on() -> None:
    thread = Resists().begin()
    try:
        assert not ended(thread, [], 10)
    finally:
        TOLD.set()
        ended(thread, [EnabledPlugin(plugin=Resists())], 200)


def test_a_process_whose_thread_cannot_be_ended_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        TOLD.set()

    TOLD.clear()
    monkeypatch.setattr("os._exit", leave)
    thread = Resists().begin()
    try:
        ended(thread, [EnabledPlugin(plugin=Resists())], 200)
        assert codes[:1] == [70]
    finally:
        TOLD.set()
        ended(thread, [EnabledPlugin(plugin=Resists())], 200)
