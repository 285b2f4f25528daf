"""Watches: which events come, from when on, and how they end."""

import asyncio

import aiohttp

from sandbox.apiserver import ApiServer, Settings
from sandbox.apiserver.printing import Format
from sandbox.apiserver.resources.table import parse
from sandbox.apiserver.store.store import Item, Signal, StoreEvent
from sandbox.apiserver.watch import Watch
from tests.sandbox.apiserver.support import NODES, PODS, Http, node
from tools.waiting import until


async def version(http: Http) -> str:
    return str((await http.get(NODES)).body["metadata"]["resourceVersion"])


async def test_bookmarks_tell_an_idle_client_the_newest_version() -> None:
    settings = Settings(bookmark_seconds=0.05)
    async with ApiServer(settings) as api, aiohttp.ClientSession(api.url) as session:
        http = Http(session)
        since = await version(http)
        created = await http.create(NODES, node())
        async with http.watch(PODS, resourceVersion=since, allowWatchBookmarks="1") as events:
            bookmark = await events.next()
        assert bookmark["type"] == "BOOKMARK"
        newest = created["metadata"]["resourceVersion"]
        assert bookmark["object"]["metadata"]["resourceVersion"] == newest


async def test_a_version_from_before_the_history_is_expired() -> None:
    async with ApiServer(Settings(history=5)) as api, aiohttp.ClientSession(api.url) as session:
        http = Http(session)
        since = await version(http)
        for i in range(11):
            await http.create(NODES, node(f"n{i}"))
        async with http.watch(NODES, resourceVersion=since) as events:
            error, *more = await events.rest()
        assert not more
        assert error["type"] == "ERROR"
        assert (error["object"]["code"], error["object"]["reason"]) == (410, "Expired")
        assert error["object"]["message"].startswith(f"too old resource version: {since}")


async def test_versions_of_an_earlier_server_are_expired(http: Http) -> None:
    async with http.watch(NODES, resourceVersion="12345") as events:
        assert (await events.rest())[0]["object"]["code"] == 410


async def test_a_version_from_the_future_is_expired_or_refused(http: Http) -> None:
    future = str(int(await version(http)) + 1_000_000)
    async with http.watch(NODES, resourceVersion=future) as events:
        assert (await events.rest())[0]["object"]["code"] == 410
    reply = await http.get(f"{NODES}?resourceVersion={future}")
    assert (reply.code, reply.body["reason"]) == (504, "Timeout")


async def test_no_change_is_lost_between_list_and_watch(http: Http) -> None:
    async def create() -> None:
        for i in range(100):
            await http.create(NODES, node(f"n{i:03}"))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(create())
        await http.create(NODES, node("start"))
        listed = (await http.get(NODES)).body
        known = [item["metadata"]["name"] for item in listed["items"]]
        since = listed["metadata"]["resourceVersion"]
        async with http.watch(NODES, resourceVersion=since) as events:
            seen = [name for _, name in await events.take(101 - len(known))]
    assert sorted(known + seen) == [*(f"n{i:03}" for i in range(100)), "start"]


async def test_a_watch_is_forgotten_when_the_client_hangs_up(http: Http, api: ApiServer) -> None:
    async with http.watch(NODES):
        assert api.faults.watches() == 1
    await until(lambda: api.faults.watches() == 0)


class CountedSignal(Signal):
    """Counts how often a watch goes to sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    async def wait(self, timeout_seconds: float) -> None:
        self.waits += 1
        await super().wait(timeout_seconds)


async def test_an_idle_watch_without_bookmarks_sleeps_until_it_ends(api: ApiServer) -> None:
    nodes = parse("/api/v1/nodes").resource
    changed = api.cluster.collection(nodes).changed = CountedSignal()
    settings = Settings(watch_seconds=0.1, bookmark_seconds=0.01)
    now = {"resourceVersion": str(api.cluster.store.revision)}
    watch = Watch(api.cluster, parse("/api/v1/nodes"), now, Format(), settings)
    assert [chunk async for chunk in watch.chunks()] == []
    assert changed.waits <= 3, "it woke up again and again once a bookmark would have been due"


async def test_a_change_just_before_the_first_event_is_told_once(api: ApiServer) -> None:
    nodes = parse("/api/v1/nodes/n1")
    settings = Settings(watch_seconds=0.05)
    watch = Watch(api.cluster, parse("/api/v1/nodes"), {}, Format(), settings)
    api.cluster.create(nodes, node())
    chunks = [chunk async for chunk in watch.chunks()]
    assert len(b"".join(chunks).splitlines()) == 1


def test_an_event_is_encoded_once_for_all_watchers() -> None:
    item = Item(node() | {"metadata": {"name": "n1", "resourceVersion": "1"}}, 1)
    change = StoreEvent("ADDED", item, None)
    resource = parse("/api/v1/nodes").resource
    assert Format().line(resource, "ADDED", change) is Format().line(resource, "ADDED", change)
