"""Processes are started, kept and stopped."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.up.processes import Process, Processes, ProcessFailedError
from cli.up.processes.process import DEATHS
from moorage.errors import causes
from tests.cli.support import PATIENCE
from tools.waiting import until


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
async def processes(said: list[str]) -> AsyncIterator[Processes]:
    running = Processes(said.append)
    yield running
    await running.stop()


def process(directory: Path, deed: str = "serves", *, replaceable: bool = True) -> Process:
    return Process(
        name=f"it-{deed}",
        module="tests.cli.up.tiny",
        options=[deed],
        log=directory / f"{deed}.log",
        replaceable=replaceable,
    )


async def test_a_process_that_dies_is_started_again(
    tmp_path: Path, processes: Processes, said: list[str]
) -> None:
    one = process(tmp_path)
    await processes.start([one])
    assert one.served["address"] == "here"
    first = one.pid
    async with processes.kept():
        os.kill(first, signal.SIGKILL)
        await until(lambda: one.pid != first)
    assert said == ["it-serves was killed by SIGKILL; starting it again in 0.2 s"]


async def test_a_process_is_given_up_with_its_last_words_once_it_has_not_served_again_and_again(
    tmp_path: Path, processes: Processes, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.up.processes.process.RESTART_PAUSE", 0.001)
    one = process(tmp_path, "dies")
    await processes.start([one])

    async def keep() -> None:
        async with asyncio.timeout(PATIENCE), processes.kept():
            await until(lambda: len(said) > DEATHS + 2)  # it has served before each of them
            one.options = ["breaks"]
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as caught:
        await keep()
    (error,) = causes(caught.value)
    end = "it-dies ended with exit code 1: these are its last words"
    assert str(error) == f"{end}; it was started {DEATHS + 1} times and never served"
    assert said[0] == f"{end}; starting it again in 0.001 s"
    assert said[-1] == f"{end}; starting it again in {0.001 * 2**DEATHS:g} s"


async def test_a_process_that_holds_the_cluster_cannot_be_replaced(
    tmp_path: Path, processes: Processes, said: list[str]
) -> None:
    await processes.start([process(tmp_path, "dies", replaceable=False)])
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(PATIENCE), processes.kept():
            await asyncio.Event().wait()
    assert "the embedded cluster is lost" in str(next(causes(caught.value)))
    assert said == []


async def test_a_process_that_never_serves_is_an_error_and_killed(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.up.processes.process.START_SECONDS", 0.05)
    silent = process(tmp_path, "silent")
    with pytest.raises(ExceptionGroup) as caught:
        await processes.start([silent])
    (error,) = causes(caught.value)
    assert isinstance(error, ProcessFailedError)
    assert "it-silent is not ready after 0.05 s" in str(error)
    async with asyncio.timeout(PATIENCE):
        assert await silent.wait() == "it-silent was killed by SIGTERM"


async def test_a_process_is_replaced_by_one_that_serves_and_not_started_again(
    tmp_path: Path, processes: Processes, said: list[str]
) -> None:
    one, other = process(tmp_path), process(tmp_path, "first")
    await processes.start([one, other])
    first, kept = one.pid, other.pid
    async with processes.kept():
        async with processes.replacing(["it-serves"]):
            assert one.pid == first
        assert one.pid != first
        await until(lambda: not Path(f"/proc/{first}").exists())
        second = one.pid
        os.kill(second, signal.SIGKILL)  # it is kept as the first one was
        await until(lambda: one.pid != second)
    assert other.pid == kept
    assert said == ["it-serves was killed by SIGKILL; starting it again in 0.2 s"]


async def test_a_process_stays_if_its_successor_does_not_serve(
    tmp_path: Path, processes: Processes, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = process(tmp_path)
    await processes.start([one])
    first = one.pid
    monkeypatch.setattr("cli.up.processes.process.START_SECONDS", 0.05)
    one.options = ["silent"]
    async with processes.kept():
        with pytest.raises(ExceptionGroup) as caught:
            async with processes.replacing(["it-serves"]):
                raise AssertionError
        assert "it-serves is not ready after 0.05 s" in str(next(causes(caught.value)))
        assert one.pid == first
        os.kill(first, 0)
    assert said == []


async def test_no_pipe_is_left_of_a_process_whose_child_holds_it(
    tmp_path: Path, processes: Processes
) -> None:
    await processes.start([process(tmp_path)])  # with the fork server

    def opened() -> int:
        return len([*Path("/proc/self/fd").iterdir()])

    before = opened()
    one = process(tmp_path, "forks")
    await processes.start([one])
    await one.stop()
    child = int(one.served["address"])
    try:
        await until(lambda: opened() <= before)
    finally:
        os.kill(child, signal.SIGKILL)


async def test_what_was_started_last_stops_first(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[str] = []
    stop = Process.stop

    async def noted(self: Process) -> None:
        await stop(self)
        ends.append(self.name)

    monkeypatch.setattr(Process, "stop", noted)
    await processes.start([process(tmp_path)], [process(tmp_path, "first")])
    await processes.stop()
    assert ends == ["it-first", "it-serves"]
