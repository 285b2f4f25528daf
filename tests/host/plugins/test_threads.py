"""A thread of a plugin that keeps the processor is reported, and one of others is not."""

import logging
import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from moorage.execution import EnabledPlugin
from moorage_host.plugins.threads import BUSY, LONGEST_SECONDS, BusyThreads, processor_seconds
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
        self.threads = BusyThreads(lambda: self.now, lambda _: self.now * self.share)

    @property
    def problem(self) -> str:
        return self.threads.problems.get(self.plugin.name, "")

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


def test_a_thread_that_never_ends_is_reported_once_with_its_place(
    pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    work, looks = pool.submit(_until_told), Looks(share=BUSY + 0.01)
    looks.look(LOOKS - 1)
    assert not looks.problem
    with caplog.at_level(logging.ERROR):
        looks.look(LOOKS)
    assert re.fullmatch(r"a thread keeps the processor .* at test_threads\.py:\d+", looks.problem)
    (record,) = caplog.records
    assert "_until_told" in record.getMessage()
    told.append(True)
    work.result(20)
    looks.look(2)
    assert not looks.problem


def test_a_thread_below_the_limit_is_left_alone(pool: ThreadPoolExecutor) -> None:
    work, looks = pool.submit(_until_told), Looks(share=BUSY - 0.01)
    looks.look(10 * LOOKS)
    told.append(True)
    work.result(20)
    assert not looks.problem


def test_a_thread_that_is_no_plugin_s_goes_on(pool: ThreadPoolExecutor) -> None:
    work, looks = pool.submit(_until_told), Looks()
    looks.look(2 * LOOKS, EnabledPlugin(plugin=Passes()))
    told.append(True)
    work.result(20)


def test_the_processor_time_of_a_thread_is_in_seconds() -> None:
    def ticks() -> int:
        fields = Path("/proc/thread-self/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])  # user and system

    before, seconds = ticks(), processor_seconds(threading.get_native_id())
    assert before <= round(seconds * os.sysconf("SC_CLK_TCK")) <= ticks()
    assert before > 0
    assert processor_seconds(2**30) == 0
