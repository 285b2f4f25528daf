"""The campaign of faults: its links, its oracle, and its seed."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tools.chaos.faults import Extent
from tools.chaos.link import Link, Streams
from tools.chaos.load import RUN, Wanted
from tools.chaos.oracle import Act, FailedCalls, Verdict, Write, judge
from tools.chaos.plugins.rules.rules import EXCLUSIVE, LIMITED
from tools.chaos.schedule import ONE_GATEWAY, rounds

CLIENTS: list[asyncio.StreamWriter] = []


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    yield
    for writer in CLIENTS:
        writer.transport.abort()
    CLIENTS.clear()
    await asyncio.sleep(0)


@asynccontextmanager
async def echoing() -> AsyncIterator[Link]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        CLIENTS.append(writer)
        with suppress(OSError):
            await echo(reader, writer)

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    link = Link("test", [server.sockets[0].getsockname()[1]])
    await link.start()
    try:
        yield link
    finally:
        await link.stop()
        server.close()


async def connect(link: Link) -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    CLIENTS.append(writer)
    return reader, writer


async def ask(streams: Streams, text: bytes, seconds: float = 5.0) -> bytes:
    reader, writer = streams
    writer.write(text)
    async with asyncio.timeout(seconds):
        return await reader.readexactly(len(text))


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_a_partition_holds_bytes_and_healing_delivers_them(direction: str) -> None:
    async with echoing() as link:
        streams = await connect(link)
        assert await ask(streams, b"one") == b"one"
        link.hold("up" if direction == "up" else "down")
        with pytest.raises(TimeoutError):
            await ask(streams, b"two", 0.05)
        link.heal()
        assert await asyncio.wait_for(streams[0].readexactly(3), 5) == b"two"


async def test_a_cut_is_seen_by_the_client_and_new_connections_pass() -> None:
    async with echoing() as link:
        streams = await connect(link)
        await ask(streams, b"one")
        link.cut()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await ask(streams, b"two")
        assert await ask(await connect(link), b"three") == b"three"


async def test_a_half_open_connection_stays_silent_for_ever() -> None:
    async with echoing() as link:
        streams = await connect(link)
        await ask(streams, b"one")
        link.half_open()
        with pytest.raises(TimeoutError):
            await ask(streams, b"two", 0.05)
        assert await ask(await connect(link), b"three") == b"three"


async def test_a_client_that_closes_ends_the_connection_to_the_server() -> None:
    async with echoing() as link:
        reader, writer = await connect(link)
        writer.write(b"last")
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 5) == b"last"


async def test_a_server_that_is_not_there_resets_the_client() -> None:
    async with echoing() as link:
        link.targets = [1]
        reader, _ = await connect(link)
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(reader.readexactly(1), 5)


def pods(pool: str, *labels: dict[str, str]) -> list[Wanted]:
    return [
        Wanted(name=f"p{i}", kind=pool, at=0, pool=pool, labels=each)
        for i, each in enumerate(labels)
    ]


def judged(wanted: list[Wanted], *acts: str) -> Verdict:
    """Each act is "bind p0 node", "delete p0" or "create p0"; all pods are created first."""
    created = [f"create {name}" for name in dict.fromkeys(each.name for each in wanted)]
    return judge([write(i, act) for i, act in enumerate([*created, *acts])], wanted)


def write(at: int, text: str) -> Write:
    verb, name, node, code, *_ = (*text.split(), "", "", "")
    acts: dict[str, Act] = {"bind": "bind", "create": "create", "delete": "delete"}
    return Write(
        act=acts[verb],
        name=name,
        node=node,
        code=int(code or 201),
        injected=code == "429",
        client="",
        at=float(at),
    )


@pytest.mark.parametrize(
    ("wanted", "acts", "broken"),
    [
        (pods("plain", {}), ["bind p0 runs-1"], "pool plain"),
        (pods("runs", {RUN: "a"}, {RUN: "a"}), ["bind p0 runs-1", "bind p1 runs-2"], "run a is on"),
        (pods("runs", {RUN: "a"}, {RUN: "b"}), ["bind p0 runs-1", "bind p1 runs-1"], "has run a"),
        (
            pods("exclusive", *[{EXCLUSIVE: ""}] * 2),
            ["bind p0 exclusive-1", "bind p1 exclusive-1"],
            "exclusive pod",
        ),
        (
            pods("limited", *[{LIMITED: ""}] * 2),
            [f"bind p{i} limited-1" for i in range(2)],
            "1 limited pods",
        ),
    ],
)
def test_a_broken_rule_is_named(wanted: list[Wanted], acts: list[str], broken: str) -> None:
    (sentence,) = judged(wanted, *acts).broken
    assert broken in sentence
    assert judged(wanted, *acts[:-1]).broken == []


def test_a_pod_that_is_deleted_makes_place() -> None:
    wanted = pods("exclusive", *[{EXCLUSIVE: ""}] * 2)
    verdict = judged(wanted, "bind p0 exclusive-1", "delete p0", "bind p1 exclusive-1")
    assert verdict.broken == []


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    old, new = pods("a", {}), pods("b", {})
    verdict = judged(old + new, "delete p0", "create p0", "bind p0 a-1")
    assert "it belongs into the pool b" in verdict.broken[0]


def test_only_second_binds_that_succeed_count_as_twice() -> None:
    wanted = pods("plain", {})
    assert judged(wanted, "bind p0 plain-1", "bind p0 plain-1 409").twice == 0
    assert judged(wanted, "bind p0 plain-1", "bind p0 plain-1").twice == 1


def test_posts_that_a_fault_refused_do_not_count() -> None:
    verdict = judged(pods("plain", {}), "bind p0 plain-1 429", "bind p0 plain-1")
    assert verdict.posts_per_bind == 1


def test_the_pause_is_the_longest_time_in_which_a_pod_waited_in_vain() -> None:
    wanted = pods("plain", {}, {}, {})
    verdict = judged(wanted, "bind p0 plain-1", "delete p1", "bind p2 plain-1")
    assert verdict.pause == 3  # from the first creation to the first bind


def test_a_pod_whose_create_failed_and_was_done_counts_once_it_is_deleted() -> None:
    old, new = pods("a", {}), pods("b", {})
    acts = ("create p0 - 500", "delete p0", "create p0", "bind p0 b-1")
    verdict = judge([write(at, act) for at, act in enumerate(acts)], old + new)
    assert verdict.broken == []
    assert verdict.bound == 1


def test_calls_without_an_answer_are_found_once(tmp_path: Path) -> None:
    log = tmp_path / "kube-scheduler.log"
    errors = [
        'Post "http://127.0.0.1:1234/filter": read: connection reset by peer',
        "failed bind with extender at URL http://127.0.0.1:1234/bind, code 503",
        "checked again at the bind, AtMost rejects: node has its limited pods",
    ]
    lines = [json.dumps({"pod": "default/p", "error": error}) for error in errors]
    calls = FailedCalls(log)
    log.write_text("\n".join(lines) + "\n" + lines[0])
    assert calls.read() == ["filter: read: connection reset by peer", "bind: code 503"]
    log.write_text(log.read_text() + "\n")
    assert len(calls.read()) == 1


def test_the_same_seed_gives_the_same_schedule() -> None:
    first, second = (list(rounds(7, Extent(), ONE_GATEWAY)) for _ in range(2))
    assert first == second
    assert first != list(rounds(8, Extent(), ONE_GATEWAY))


def test_a_round_is_the_same_whichever_others_run() -> None:
    everything = list(rounds(7, Extent(), ONE_GATEWAY))
    assert everything[3:] == list(rounds(7, Extent(), ONE_GATEWAY))[3:]
