"""Following nodes and pods, on a real API server that fails on demand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client import Counter

from gateway.cluster.cluster import NODES
from gateway.cluster.endings import Restart, WatchLimits
from gateway.cluster.pods import PODS as POD_RESOURCE
from gateway.cluster.pods import SeenPod
from gateway.cluster.reflector import Reflector
from gateway.cluster.wire import Resource
from moorage.models import NodeManifest, Pod
from moorage_host.kube import KubeClient, connect
from sandbox.apiserver import ApiServer, Settings
from tools.inprocess.api import Api, Object, send
from tools.waiting import until

FAST: dict[str, Any] = {"backoff_initial": 0.01, "backoff_maximum": 0.05}
PODS = "/api/v1/namespaces/default/pods"


class Recorded:
    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.calls: list[str] = []
        self.events: list[str] = []
        self.restarts: list[Restart] = []

    def upsert(self, obj: NodeManifest | Pod) -> None:
        self.calls.append(f"upsert {obj.metadata.name}")
        self.objects[_key(obj)] = obj

    def delete(self, key: str) -> None:
        self.calls.append(f"delete {self.objects.pop(key).metadata.name}")

    def received(self, event: str) -> Counter:
        self.events.append(event)
        return Counter("events", "Of this test.", registry=None)

    def restarted(self, reason: Restart) -> None:
        self.restarts.append(reason)

    @property
    def names(self) -> set[str]:
        return {obj.metadata.name for obj in self.objects.values()}


def _key(obj: NodeManifest | Pod) -> str:
    return obj.metadata.uid if isinstance(obj, Pod) else obj.metadata.name


class World:
    def __init__(self, server: ApiServer, client: KubeClient) -> None:
        self.server = server
        self.client = client
        self.api = Api(server)


@asynccontextmanager
async def world_of(server: ApiServer, folder: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server)
        (folder / "kubeconfig").write_text(server.kubeconfig())
        client = await connect(folder / "kubeconfig")
        stack.push_async_callback(client.close)
        yield World(server, client)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_of(ApiServer(), tmp_path) as world:
        yield world


@asynccontextmanager
async def running(reflector: Reflector[Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(reflector.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


@asynccontextmanager
async def reflecting_nodes(
    client: KubeClient, **limits: Any
) -> AsyncIterator[tuple[Reflector[Any], Recorded]]:
    async with following(client, NODES, **limits) as found:
        yield found


@asynccontextmanager
async def following(
    client: KubeClient, resource: Resource[Any], **limits: Any
) -> AsyncIterator[tuple[Reflector[Any], Recorded]]:
    recorded = Recorded()
    reflector = Reflector(
        client,
        resource,
        put=lambda seen: recorded.upsert(seen.pod if isinstance(seen, SeenPod) else seen),
        drop=recorded.delete,
        received=recorded.received,
        restarted=recorded.restarted,
        limits=WatchLimits(**{**FAST, **limits}),
    )
    async with running(reflector):
        yield reflector, recorded


async def test_the_first_list_is_streamed_and_handed_over_at_once(world: World) -> None:
    world.api.node("a"), world.api.node("b")
    lists = world.api.count("list", "nodes")
    async with reflecting_nodes(world.client) as (reflector, recorded):
        assert not reflector.synced.is_set()
        await asyncio.wait_for(reflector.synced.wait(), 50)
        assert sorted(recorded.calls) == ["upsert a", "upsert b"]
        assert lists() == 0


async def test_changes_arrive_one_by_one(world: World) -> None:
    node = world.api.node("a")
    async with reflecting_nodes(world.client) as (_, recorded):
        await until(lambda: recorded.names == {"a"})
        world.api.node("b")
        change = {"metadata": {"labels": {"zone": "1"}}}
        await send(world.client, "PATCH", "/api/v1/nodes/a", change)
        await send(world.client, "DELETE", "/api/v1/nodes/b")
        await until(lambda: "delete b" in recorded.calls)
    assert recorded.calls == ["upsert a", "upsert b", "upsert a", "delete b"]
    assert recorded.objects["a"].metadata.labels == {"zone": "1"}
    assert recorded.objects["a"].metadata.uid == node["metadata"]["uid"]
    assert recorded.events[-3:] == ["ADDED", "MODIFIED", "DELETED"]


async def test_pods_are_known_by_uid(world: World) -> None:
    old = world.api.pod("web")
    async with following(world.client, POD_RESOURCE) as (_, recorded):
        await until(lambda: recorded.names == {"web"})
        await send(world.client, "DELETE", f"{PODS}/web")
        new = world.api.pod("web")
        await until(lambda: set(recorded.objects) == {new["metadata"]["uid"]})
        assert old["metadata"]["uid"] not in recorded.objects


async def test_a_pod_that_ends_is_deleted_and_one_that_has_ended_never_comes(
    world: World,
) -> None:
    for name in ("done", "runs"):
        world.api.pod(name)
    await _end(world, "done", "Succeeded")
    async with following(world.client, POD_RESOURCE) as (_, recorded):
        await until(lambda: recorded.names == {"runs"})
        await _end(world, "runs", "Failed")
        await until(lambda: recorded.names == set())
    assert recorded.calls == ["upsert runs", "delete runs"]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed list", "LIST"])
async def test_after_410_the_difference_to_a_new_list_is_handed_over(
    tmp_path: Path, streamed: bool
) -> None:
    async with world_of(ApiServer(Settings(bookmark_seconds=0.02)), tmp_path) as world:
        api = world.api
        for name in ("stays", "goes", "changes", "is-made-anew"):
            api.node(name)
        if not streamed:
            api.fault("watch", "nodes", status=400)
        async with reflecting_nodes(world.client, page_size=2) as (_, recorded):
            await until(lambda: recorded.calls and recorded.events.count("BOOKMARK") > 1)
            # Nothing is awaited here, so the reflector hears of none of it before the 410.
            recorded.calls.clear()
            api.delete("/api/v1/nodes/goes")
            api.delete("/api/v1/nodes/is-made-anew")
            api.node("is-made-anew"), api.node("comes")
            api.label("/api/v1/nodes/changes", zone="1")
            assert world.server.faults.expire_watches() == 1
            await until(lambda: recorded.calls)
            calls = sorted(recorded.calls)
            api.node("later")
            await until(lambda: "later" in recorded.names)
        assert calls == [
            "delete goes",
            "delete is-made-anew",
            "upsert changes",
            "upsert comes",
            "upsert is-made-anew",
        ]
        assert recorded.names == {"stays", "changes", "is-made-anew", "comes", "later"}
        assert recorded.restarts[-1] is Restart.EXPIRED


async def test_410_in_the_middle_of_a_watch_leads_to_a_new_list_at_once(world: World) -> None:
    world.api.node("a")
    at_once = {"backoff_initial": 3600.0, "backoff_maximum": 3600.0}
    async with reflecting_nodes(world.client, **at_once) as (_, recorded):
        await until(lambda: recorded.names == {"a"})
        assert world.server.faults.expire_watches() == 1
        await until(lambda: recorded.restarts == [Restart.EXPIRED])
        world.api.node("b")
        await until(lambda: recorded.names == {"a", "b"})
    assert recorded.calls == ["upsert a", "upsert b"]
    assert "ERROR" in recorded.events


async def test_after_an_outage_the_objects_are_fresh_soon_however_long_it_took(
    world: World,
) -> None:
    world.api.node("a")
    # With waits that grow, the next try would come in an hour.
    waits = {"backoff_initial": 0.01, "backoff_maximum": 3600.0, "outage_maximum": 0.02}
    async with reflecting_nodes(world.client, **waits) as (reflector, recorded):
        await until(lambda: recorded.names == {"a"})
        assert reflector.interruption() == 0.0
        world.api.fault("watch", "nodes", drop=True, times=50)
        world.api.fault("watch", "nodes", status=503, retry_after_seconds=0, times=20)
        world.api.fault("watch", "nodes", status=403, times=20)  # while it starts
        world.api.fault("watch", "nodes", status=410)
        world.server.faults.drop_watches()
        await until(lambda: Restart.REFUSED in recorded.restarts)
        assert reflector.interruption() > 0.0
        world.api.node("b")
        await until(lambda: recorded.names == {"a", "b"})
        assert reflector.interruption() == 0.0
    assert recorded.restarts.count(Restart.REFUSED) == 20
    assert recorded.restarts[-1] is Restart.EXPIRED


async def test_a_watch_that_is_resumed_is_no_interruption_although_nothing_happens(
    world: World,
) -> None:
    world.api.node("a")
    async with reflecting_nodes(world.client) as (reflector, recorded):
        await until(lambda: recorded.names == {"a"})
        world.api.fault("watch", "nodes", status=500, times=3)
        assert world.server.faults.drop_watches() == 1
        await until(lambda: reflector.interruption() > 0.0)
        await until(lambda: reflector.interruption() == 0.0)
        assert reflector.problem == ""
    assert recorded.calls == ["upsert a"]


async def test_a_watch_that_falls_silent_is_given_up(world: World) -> None:
    world.api.node("a")
    async with reflecting_nodes(world.client, silence=0.1) as (_, recorded):
        await until(lambda: Restart.SILENT in recorded.restarts)
        world.api.node("b")
        await until(lambda: recorded.names == {"a", "b"})
    assert recorded.calls == ["upsert a", "upsert b"]


async def test_bookmarks_keep_an_idle_watch_alive_and_fresh(tmp_path: Path) -> None:
    server = ApiServer(Settings(bookmark_seconds=0.02))
    async with (
        world_of(server, tmp_path) as world,
        reflecting_nodes(world.client, silence=5.0) as (reflector, recorded),
    ):
        assert reflector.age() == float("inf")
        await until(lambda: recorded.events.count("BOOKMARK") > 3)
        assert 0 <= reflector.age() < 5.0
        assert reflector.synced.is_set(), "an empty cluster is synced too"
        heard = reflector.last_heard
        await until(lambda: reflector.last_heard > heard)
    assert recorded.restarts == []
    assert recorded.calls == []


async def test_a_bookmark_moves_the_point_from_which_a_watch_resumes(tmp_path: Path) -> None:
    server = ApiServer(Settings(bookmark_seconds=0.02, history=8))
    async with (
        world_of(server, tmp_path) as world,
        following(world.client, POD_RESOURCE) as (_, recorded),
    ):
        world.api.pod("ended"), world.api.pod("runs")
        await _end(world, "ended", "Succeeded")
        await until(lambda: recorded.names == {"runs"})
        for number in range(20):  # more than the server remembers, and invisible to the reflector
            change = {"metadata": {"labels": {"number": str(number)}}}
            await send(world.client, "PATCH", f"{PODS}/ended", change)
        seen = recorded.events.count("BOOKMARK")
        await until(lambda: recorded.events.count("BOOKMARK") > seen + 1)
        world.server.faults.drop_watches()
        world.api.pod("later")
        await until(lambda: recorded.names == {"runs", "later"})
    assert recorded.restarts == [Restart.UNREACHABLE]


async def test_a_throttled_watch_waits_for_as_long_as_the_server_asks(
    world: World, sleeps: list[float]
) -> None:
    world.api.node("a")
    world.api.fault("watch", "nodes", status=429, retry_after_seconds=1)
    async with reflecting_nodes(world.client) as (_, recorded):
        await until(lambda: recorded.names == {"a"})
    assert max(sleeps) >= 1.0
    assert recorded.restarts == [Restart.THROTTLED]


async def test_nothing_is_handed_over_before_a_list_is_complete(world: World) -> None:
    world.api.node("a")
    world.api.fault("watch", "nodes", status=422)
    for page in range(2):
        world.api.fault("list", "nodes", status=500 if page else 410)
    for number in range(5):
        world.api.node(f"n-{number}")
    async with reflecting_nodes(world.client, page_size=2) as (_, recorded):
        await until(lambda: len(recorded.names) == 6)
    assert len(recorded.calls) == 6
    assert recorded.restarts == [
        Restart.NO_STREAMED_LIST,
        Restart.EXPIRED,
        Restart.SERVER_ERROR,
    ]


async def test_an_object_that_cannot_be_read_does_not_stop_the_others(world: World) -> None:
    def decode(text: msgspec.Raw) -> Pod:
        pod = msgspec.json.decode(text, type=Pod)
        if pod.name == "odd":
            raise msgspec.ValidationError("odd")
        return pod

    world.api.pod("odd"), world.api.pod("even")
    resource = Resource(path="/api/v1/pods", key="uid", decode=decode)
    async with following(world.client, resource) as (_, recorded):
        await until(lambda: recorded.names == {"even"})
        await send(world.client, "DELETE", f"{PODS}/odd")
        world.api.pod("last")
        await until(lambda: recorded.names == {"even", "last"})
    assert recorded.restarts == []


DEEP = b'{"type": "ADDED", "object": ' + b"[" * 9000 + b"]" * 9000 + b"}\n"


@pytest.mark.parametrize(
    ("line", "first", "seconds"),
    [
        pytest.param(b"<html>\n", Restart.MALFORMED, 0.5, id="no JSON"),
        pytest.param(DEEP, Restart.MALFORMED, 0.5, id="deep"),
        pytest.param(b"", Restart.NO_STREAMED_LIST, 0.1, id="no bookmark at the end"),
    ],
)
async def test_a_streamed_list_that_cannot_be_read_or_never_ends_is_replaced_by_a_list(
    tmp_path: Path, line: bytes, first: Restart, seconds: float
) -> None:
    async with odd_server(tmp_path, first_line=line) as client:
        async with reflecting_nodes(client, initial_events=seconds) as (_, recorded):
            await until(lambda: recorded.calls == ["upsert listed"])
        assert recorded.restarts[0] is first
        assert recorded.restarts[-1] is Restart.NO_STREAMED_LIST


@asynccontextmanager
async def odd_server(folder: Path, first_line: bytes = b"") -> AsyncIterator[KubeClient]:
    """A server whose streamed lists begin but do not end."""
    node = {"metadata": {"name": "streamed", "uid": "u1", "resourceVersion": "1"}}
    lines = [first_line]

    async def handler(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            listed = {"metadata": {"name": "listed", "uid": "u2", "resourceVersion": "2"}}
            return web.json_response({"metadata": {"resourceVersion": "2"}, "items": [listed]})
        response = web.StreamResponse()
        await response.prepare(request)
        event = msgspec.json.encode({"type": "ADDED", "object": node})
        if "sendInitialEvents" in request.query:
            await response.write((lines.pop() if lines else b"") + event + b"\n")
        await asyncio.Event().wait()
        return response

    app = web.Application()
    app.router.add_get("/api/v1/nodes", handler)
    server = TestServer(app)
    await server.start_server()
    file = folder / "kubeconfig"
    url = str(server.make_url("")).rstrip("/")
    file.write_text(
        "current-context: a\n"
        "contexts: [{name: a, context: {cluster: a}}]\n"
        f"clusters: [{{name: a, cluster: {{server: '{url}'}}}}]\n"
    )
    client = await connect(file)
    try:
        yield client
    finally:
        await client.close()
        await server.close()


async def _end(world: World, name: str, phase: str) -> Object:
    body = {"status": {"phase": phase}}
    return await send(world.client, "PATCH", f"{PODS}/{name}/status", body)
