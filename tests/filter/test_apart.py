"""What a plugin does to its process ends a fork at most, once a replica was lost by its pod."""

import asyncio
import ctypes
import os
import select
import signal
import time
from collections.abc import Callable
from mmap import PAGESIZE, mmap
from pathlib import Path
from typing import Any

import grpc.aio
import msgspec
import pytest

from moorage import FilterPlugin, Group, Node, Nodes, Pod, Rejection
from moorage.execution import overruns
from moorage.v1 import filter_pb2 as pb
from moorage.v1 import replica_pb2, types_pb2
from moorage_host.rpc import apart
from moorage_host.rpc import session as session_module
from tests.filter.sessions import POD, Session, cycle, filtering, full_state


def segfault() -> None:
    ctypes.string_at(0)


def leave() -> None:
    os._exit(0)


def close_descriptors() -> None:
    os.closerange(0, 1000)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def loop_with_the_signal_blocked() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGALRM,))
    while True:
        pass


def loop() -> None:
    while True:
        pass


def allocate() -> None:
    bytearray(1 << 30)


DEEDS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        *(segfault, leave, close_descriptors, kill, loop_with_the_signal_blocked, loop),
        allocate,
    )
}


class Culprit(FilterPlugin):
    """Does what a label of the pod says."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if deed := pod.labels.get("deed"):
            DEEDS[deed]()
        return None


def about(name: str, deed: str = "", namespace: str = "tenant", **more: Any) -> types_pb2.Cycle:
    metadata = {"name": name, "namespace": namespace, "uid": name}
    labels = {"labels": {"deed": deed}} if deed else {}
    content = {**POD, "metadata": {**metadata, **labels}}
    return cycle(pod=types_pb2.Pod(json=msgspec.json.encode(content)), **more)


async def outcome(session: Session, asked: types_pb2.Cycle) -> str:
    result = (await session.ask(cycle=asked)).result
    assert result.cycle == 1
    return str(result.status.message)


@pytest.mark.parametrize(
    ("deed", "how"),
    [
        ("segfault", "its process ended by SIGSEGV, once"),
        ("leave", "its process ended with exit code 0, once"),
        ("close_descriptors", "its process ended with exit code 70, once"),
        ("kill", "its process ended by SIGKILL, once"),
        ("loop_with_the_signal_blocked", "1 overrun, the last in a process of its own"),
        ("allocate", "its process ended for lack of memory, once"),
    ],
)
async def test_a_suspect_takes_no_replica_along(deed: str, how: str) -> None:
    async with filtering(Culprit) as service:
        session = await service.session(full_state(1, Culprit))
        message = await outcome(session, about("poison", deed, suspect=True))
        assert "plugin Culprit failed" in message
        assert how in message
        assert not await outcome(session, about("innocent"))
        assert how.partition(",")[0] in await outcome(session, about("poison", deed, suspect=True))


async def test_an_innocent_suspect_gets_the_same_answer() -> None:
    async with filtering(Culprit) as service:
        session = await service.session(full_state(1, Culprit))
        plain = (await session.ask(cycle=about("innocent"))).result
        apart = (await session.ask(cycle=about("innocent", suspect=True))).result
        for each in (plain, apart):
            each.ClearField("duration")
            each.ClearField("node_duration")
            for report in each.plugins:
                report.ClearField("duration")
        assert plain == apart


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class Leaver(FilterPlugin):
    """Ends its process where it is asked for the group."""

    def group(self, pod: Pod, nodes: Nodes) -> Group | None:
        os._exit(0)

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None


async def test_a_group_that_ends_its_process_is_charged_to_the_plugin() -> None:
    async with filtering(Leaver) as service:
        session = await service.session(full_state(1, Leaver))
        message = await outcome(session, about("poison", suspect=True))
        assert "plugin Leaver failed in group" in message
        assert "its process ended with exit code 0, once" in message


async def test_without_a_process_of_its_own_one_cycle_has_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    async with filtering(Culprit) as service:
        session = await service.session(full_state(1, Culprit))
        before = descriptors()
        with monkeypatch.context() as patched:
            patched.setattr(os, "fork", fail)
            message = await outcome(session, about("innocent", suspect=True))
        assert "Resource temporarily unavailable" in message
        assert descriptors() == before
        assert not await outcome(session, about("innocent", suspect=True))


class First(FilterPlugin):
    """Takes a while."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        time.sleep(0.6)
        return None


class Second(First):
    """Takes as long."""


async def test_plugins_that_are_slow_together_are_charged_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (apart, session_module):
        monkeypatch.setattr(module, "LONGEST_SECONDS", 1.0)
    async with filtering(First, Second) as service:
        session = await service.session(full_state(1, First, Second))
        assert not await outcome(session, about("innocent", suspect=True))
        short = about("innocent", suspect=True)
        short.timeout.FromMilliseconds(800)
        message = await outcome(session, short)
        assert "ran in a process of its own, which did not answer in time" in message
        assert not await outcome(session, about("innocent", suspect=True))


async def test_who_overruns_in_a_fork_is_refused_from_then_on() -> None:
    async with filtering(Culprit) as service:
        session = await service.session(full_state(1, Culprit, budget=0.2))
        poison = about("poison", "loop", suspect=True)
        assert "longer than its time budget of 0.2 s" in await outcome(session, poison)
        message = await outcome(session, poison)
        assert "not called for this pod for 1 s: 1 overrun, the last in filter_node" in message
        assert not await outcome(session, about("innocent", namespace="other", suspect=True))


class SlowBefore(FilterPlugin):
    """Takes its time, within its budget."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        time.sleep(0.4)
        return None


async def test_who_overruns_in_a_fork_is_charged_its_own_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    charged: list[float] = []
    overran = overruns.Overruns.overran

    def noted(self: overruns.Overruns, *args: Any) -> None:
        charged.append(args[-1])
        overran(self, *args)

    monkeypatch.setattr(overruns.Overruns, "overran", noted)
    async with filtering(SlowBefore, Culprit) as service:
        session = await service.session(full_state(1, SlowBefore, Culprit, budget=0.6))
        await outcome(session, about("poison", "loop", suspect=True))
    (seconds,) = charged
    assert 0.6 <= seconds < 0.95


def test_a_fork_ends_with_its_parent() -> None:
    async def work() -> bytes:
        await asyncio.Event().wait()
        return b""

    read, write = os.pipe()
    parent = os.fork()
    if not parent:
        fork = apart.Fork(work(), mmap(-1, PAGESIZE))
        os.write(write, b"%d" % fork.child)
        os._exit(0)
    os.close(write)
    assert os.read(read, 100)
    os.waitpid(parent, 0)
    assert select.select([read], [], [], 10)[0]
    assert os.read(read, 1) == b""  # the fork ended, and so closed its end
    os.close(read)


async def test_a_fork_ends_with_the_session_that_waits_for_it() -> None:
    async def work() -> bytes:
        await asyncio.Event().wait()
        return b""

    for steps in (1, 3, 10):
        fork = apart.Fork(work(), mmap(-1, PAGESIZE))
        answer = asyncio.create_task(fork.answer(60))
        for _ in range(steps):
            await asyncio.sleep(0)
        answer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answer
        with pytest.raises(ProcessLookupError):
            os.kill(fork.child, 0)


@pytest.mark.parametrize(
    ("files", "more"),
    [
        ({"memory.max": "max", "memory.current": "1"}, 512),
        ({"memory.max": str(300 << 20), "memory.current": str(100 << 20)}, 100),
        ({"memory.max": str(300 << 20), "memory.current": str(299 << 20)}, 32),
        (
            {
                "memory/memory.limit_in_bytes": str(300 << 20),
                "memory/memory.usage_in_bytes": str(100 << 20),
            },
            100,
        ),
        ({}, 512),
    ],
)
def test_a_fork_may_allocate_what_the_container_has_room_for(
    files: dict[str, str], more: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(apart, "CGROUP", tmp_path)
    assert apart.more_bytes() == more << 20


async def test_after_the_second_time_the_plugin_is_not_called_for_the_namespace() -> None:
    async with filtering(Culprit) as service:
        session = await service.session(full_state(1, Culprit))
        assert "once" in await outcome(session, about("first", "segfault", suspect=True))
        # No suspect, but its namespace is watched: it takes no replica along either.
        message = await outcome(session, about("second", "segfault"))
        assert "suspended for 600 s for pods of this namespace" in message
        assert "SIGSEGV, 2 times" in message
        assert "suspended" in await outcome(session, about("innocent"))
        assert not await outcome(session, about("innocent", namespace="other"))
        following = service.stub.FollowProblems(replica_pb2.FollowProblemsRequest())
        reported = (await following.read()).problems["Culprit"]
        assert "not called for pods of one namespace for 600 s" in reported
        assert "SIGSEGV, 2 times" in reported
        with pytest.raises(grpc.aio.AioRpcError, match="suspended"):
            await service.by_hand.Filter(pb.FilterRequest(pod=about("innocent").pod), timeout=20)


async def test_a_plugin_that_does_it_to_several_namespaces_is_called_for_nobody() -> None:
    async with filtering(Culprit) as service:
        session = await service.session(full_state(1, Culprit))
        await outcome(session, about("first", "segfault", suspect=True))
        await outcome(session, about("second", "leave", namespace="other", suspect=True))
        message = await outcome(session, about("innocent", namespace="third"))
        assert "suspended for 600 s: its process ended with exit code 0, 2 times" in message
