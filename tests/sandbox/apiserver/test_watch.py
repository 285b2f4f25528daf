"""Watches: which events come, from when on, and how they end."""

import asyncio

import aiohttp

from sandbox.apiserver import ApiServer, Settings
from sandbox.apiserver.printing import Format
from sandbox.apiserver.resources.table import parse
from sandbox.apiserver.store.store import Item, Signal, StoreEvent
from sandbox.apiserver.watch import Watch
from tests.sandbox.apiserver.support import NODES, PODS, Http, labelled, node, pod
from tools.waiting import until

ALL_PODS = "/api/v1/pods"


async def version(http: Http) -> str:
    return str((await http.get(NODES)).body["metadata"]["resourceVersion"])


async def test_a_watch_follows_the_life_of_an_object(http: Http) -> None:
    async with http.watch(PODS, resourceVersion=await version(http)) as events:
        created = await http.create(PODS, pod())
        await http.bind("web", "n1")
        await http.send("DELETE", f"{PODS}/web")
        seen = [await events.next() for _ in range(3)]
    assert [event["type"] for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[0]["object"] == created
    assert seen[1]["object"]["spec"]["nodeName"] == "n1"
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    assert versions == sorted(set(versions))


async def test_a_watch_without_a_version_begins_with_what_is_there(http: Http) -> None:
    await http.create(NODES, node("n2"))
    await http.create(NODES, node("n1"))
    async with http.watch(NODES) as events:
        assert await events.take(2) == [("ADDED", "n1"), ("ADDED", "n2")]
        await http.create(NODES, node("n3"))
        assert await events.take(1) == [("ADDED", "n3")]


async def test_a_watch_goes_on_after_the_version_that_the_client_knows(http: Http) -> None:
    first = await http.create(NODES, node("n1"))
    await http.create(NODES, node("n2"))
    await http.send("DELETE", f"{NODES}/n1")
    since = first["metadata"]["resourceVersion"]
    async with http.watch(NODES, resourceVersion=since) as events:
        assert await events.take(2) == [("ADDED", "n2"), ("DELETED", "n1")]


async def test_a_watch_list_ends_its_initial_events_with_a_bookmark(http: Http) -> None:
    await http.create(NODES, node("n1"))
    async with http.watch(
        NODES,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ) as events:
        assert await events.take(1) == [("ADDED", "n1")]
        bookmark = await events.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "Node"
        metadata = bookmark["object"]["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert metadata["resourceVersion"] == await version(http)
        await http.create(NODES, node("n2"))
        assert await events.take(1) == [("ADDED", "n2")]


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


async def test_a_watch_ends_when_its_time_is_over(http: Http) -> None:
    async with http.watch(NODES, timeoutSeconds="1") as events:
        assert await events.rest() == []


async def test_a_label_selector_turns_changes_into_comings_and_goings(http: Http) -> None:
    since = await version(http)
    async with http.watch(PODS, resourceVersion=since, labelSelector="app=web") as events:
        await http.create(PODS, pod("other"))
        await http.create(PODS, labelled(pod(), app="web"))
        await http.patch(f"{PODS}/other", {"metadata": {"labels": {"app": "web"}}})
        await http.patch(f"{PODS}/web", {"metadata": {"labels": {"b": "1"}}})
        left = await http.patch(f"{PODS}/web", {"metadata": {"labels": {"app": "db"}}})
        await http.send("DELETE", f"{PODS}/web")
        await http.send("DELETE", f"{PODS}/other")
        assert await events.take(3) == [("ADDED", "web"), ("ADDED", "other"), ("MODIFIED", "web")]
        gone = await events.next()
        assert await events.take(1) == [("DELETED", "other")]
    assert gone["type"] == "DELETED"
    # As it last matched, at the version at which it stopped to match.
    assert gone["object"]["metadata"]["labels"] == {"app": "web", "b": "1"}
    version_of_change = left.body["metadata"]["resourceVersion"]
    assert gone["object"]["metadata"]["resourceVersion"] == version_of_change


async def test_a_field_selector_works_the_same_way(http: Http) -> None:
    since = await version(http)
    selector = "spec.nodeName=,status.phase!=Succeeded"
    async with http.watch(ALL_PODS, resourceVersion=since, fieldSelector=selector) as events:
        await http.create(PODS, pod())
        await http.bind("web", "n1")
        assert await events.take(2) == [("ADDED", "web"), ("DELETED", "web")]


async def test_a_namespace_sees_only_its_own(http: Http) -> None:
    since = await version(http)
    other = "/api/v1/namespaces/kube-system/pods"
    async with http.watch(PODS, resourceVersion=since) as events:
        await http.create(other, pod("system"))
        await http.create(PODS, pod())
        assert await events.take(1) == [("ADDED", "web")]


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
