"""The rules of binding, on a real API server that fails on demand."""

import asyncio
import socket
from pathlib import Path

import pytest

from moorage_host.kube import KubeClient, connect
from sandbox.apiserver import ApiServer, Settings
from services.binder.binding.ledger import UnresolvedBind, UnresolvedBinds
from services.binder.binding.outcomes import BindReason, BindResult
from tools.inprocess.api import COUNTED, Api, Object, send
from tools.inprocess.binder import BINDINGS, World, refused
from tools.waiting import until


@pytest.fixture
def world(client: KubeClient) -> World:
    return World(client)


async def test_a_pod_that_is_being_deleted_is_refused(
    world: World, api: Api, client: KubeClient
) -> None:
    pod = api.pod()
    path = "/api/v1/namespaces/default/pods/web"
    await send(client, "PATCH", path, {"metadata": {"finalizers": ["example.com/hold"]}})
    await send(client, "DELETE", path)
    assert (await refused(world.bind(pod))).reason is BindReason.TERMINATING


@pytest.mark.parametrize(
    ("effects", "unread", "seconds"),
    [
        pytest.param({"delay_seconds": 30}, 0, 0.8, id="the answer comes too late"),
        pytest.param({"drop": True}, 0, 10, id="the connection breaks"),
        pytest.param({"status": 500}, 0, 10, id="the answer is a failure"),
        pytest.param({"drop": True}, 1, 10, id="the pod cannot be read at first"),
    ],
)
async def test_a_bind_that_happened_is_found(
    world: World, api: Api, effects: Object, unread: int, seconds: float
) -> None:
    posts = api.count(*BINDINGS, done=True, **effects)
    for _ in range(unread):
        api.fault("get", "pods", status=500)
    assert await world.bind(api.pod(), seconds=seconds) is BindResult.BOUND
    assert posts() == 1 + unread
    assert world.observed.retries == ["unreachable"] * unread


async def test_a_bind_is_one_request_at_every_latency_below_the_deadline(
    world: World, api: Api
) -> None:
    latencies = (0.1, 0.5, 1, 1.8, 2.2, 4)
    pods = {latency: [f"web-{latency}-{number}" for number in range(10)] for latency in latencies}
    for latency, names in pods.items():
        for name in names:
            api.fault(*BINDINGS, name=name, times=COUNTED, delay_seconds=latency)
    binds = [world.bind(api.pod(name)) for names in pods.values() for name in names]
    assert set(await asyncio.gather(*binds)) == {BindResult.BOUND}
    posts = {
        latency: sum(post.startswith(f"web-{latency}-") for post in world.cluster.posts)
        for latency in latencies
    }
    assert posts == dict.fromkeys(latencies, 10)


async def test_a_slow_api_server_that_fails_at_times_gets_few_more_requests_than_binds(
    world: World, api: Api
) -> None:
    pods = [f"web-{number}" for number in range(50)]
    for number, name in enumerate(pods):
        if number % 10 == 0:
            api.fault(*BINDINGS, name=name, status=500 if number % 20 else 429, delay_seconds=0.5)
        api.fault(*BINDINGS, name=name, times=COUNTED, delay_seconds=1.0)
    outcomes = await asyncio.gather(*[world.bind(api.pod(name)) for name in pods])
    assert set(outcomes) == {BindResult.BOUND}
    assert len(world.cluster.posts) <= 1.2 * len(pods)


async def test_a_bind_without_an_answer_is_unknown_and_the_next_attempt_looks_first(
    world: World, api: Api
) -> None:
    posts = api.count(*BINDINGS, done=True, delay_seconds=30)
    api.fault("get", "pods", status=500)
    pod = api.pod()
    assert (await refused(world.bind(pod, seconds=0.8))).reason is BindReason.DEADLINE
    assert posts() == 1
    assert await world.bind(pod) is BindResult.BOUND
    assert posts() == 1


async def test_a_pod_that_the_unknown_bind_did_not_reach_is_bound_by_the_next_attempt(
    world: World, api: Api
) -> None:
    api.fault(*BINDINGS, delay_seconds=30)
    pod = api.pod()
    assert (await refused(world.bind(pod, seconds=0.8))).reason is BindReason.DEADLINE
    assert await world.bind(pod, "node-b") is BindResult.BOUND
    assert api.node_of() == "node-b"


async def test_an_unknown_bind_is_not_repeated_just_before_the_deadline(
    world: World, api: Api
) -> None:
    posts = api.count(*BINDINGS, delay_seconds=30)
    pod = api.pod()
    assert (await refused(world.bind(pod, seconds=0.8))).reason is BindReason.DEADLINE
    assert (await refused(world.bind(pod, seconds=0.3))).reason is BindReason.DEADLINE
    assert posts() == 1


@pytest.mark.parametrize("status", [409, 500, 503])
async def test_a_passing_failure_is_tried_again(world: World, api: Api, status: int) -> None:
    api.fault(*BINDINGS, status=status, times=3, retry_after_seconds=0)
    assert await world.bind(api.pod()) is BindResult.BOUND
    assert world.observed.retries == [str(status)] * 3


async def test_a_throttled_bind_waits_for_as_long_as_the_server_asks(
    world: World, api: Api
) -> None:
    api.fault(*BINDINGS, status=429, retry_after_seconds=1)
    reads = api.count("get", "pods")
    assert await world.bind(api.pod()) is BindResult.BOUND
    assert reads() == 0


async def test_a_later_attempt_waits_for_as_long_as_the_server_asked(
    world: World, api: Api
) -> None:
    for status in (429, 503):
        api.fault(*BINDINGS, name=f"web-{status}", status=status, retry_after_seconds=3)
    posts = api.count(*BINDINGS)

    async def later(pod: Object) -> BindResult:
        for _ in range(2):  # on a busy machine, the time of one may be over before it is tried
            error = await refused(world.bind(pod, seconds=0.5))
            assert error.reason in (BindReason.UNAVAILABLE, BindReason.DEADLINE)
        assert posts() == 0
        return await world.bind(pod)

    pods = [api.pod(f"web-{status}") for status in (429, 503)]
    assert await asyncio.gather(*map(later, pods)) == [BindResult.BOUND] * 2
    assert posts() == 2


async def test_a_server_that_keeps_failing_is_unavailable_in_time(world: World, api: Api) -> None:
    api.fault(*BINDINGS, status=500, times=1000)
    # Not DEADLINE: the answer comes while the caller still listens.
    assert (await refused(world.bind(api.pod(), seconds=0.8))).reason is BindReason.UNAVAILABLE
    assert len(world.observed.retries) > 1


async def test_a_bind_succeeds_once_the_api_server_is_back(tmp_path: Path) -> None:
    server = ApiServer(Settings(port=_free_port()))
    server.url = f"http://127.0.0.1:{server.settings.port}"
    file = tmp_path / "kubeconfig"
    file.write_text(server.kubeconfig())
    client = await connect(file)
    try:
        world = World(client)
        pod = Api(server).pod()
        assert (await refused(world.bind(pod, seconds=0.5))).reason is BindReason.UNAVAILABLE
        known = len(world.observed.retries)
        bind = world.begin(pod)
        await until(lambda: len(world.observed.retries) > known)
        async with server:
            assert await bind is BindResult.BOUND
        assert set(world.observed.retries) == {"unreachable"}
    finally:
        await client.close()


async def test_a_call_for_another_node_waits_and_then_sees_where_the_pod_is(
    world: World, api: Api
) -> None:
    posts = api.count(*BINDINGS, delay_seconds=0.1)
    pod = api.pod()
    first = world.begin(pod, "node-a")
    await until(lambda: posts() == 1)
    assert (await refused(world.bind(pod, "node-b"))).reason is BindReason.BOUND_ELSEWHERE
    assert await first is BindResult.BOUND
    assert posts() == 1


async def test_a_call_for_another_node_binds_if_the_first_one_failed(
    world: World, api: Api
) -> None:
    api.fault(*BINDINGS, delay_seconds=0.1, status=403)
    pod = api.pod()
    first = world.begin(pod, "node-a")
    await until(lambda: world.cluster.now == 1)
    assert await world.bind(pod, "node-b") is BindResult.BOUND
    await refused(first)
    assert api.node_of() == "node-b"


async def test_a_call_that_joins_lends_its_time_to_the_request_under_way(
    world: World, api: Api
) -> None:
    posts = api.count(*BINDINGS, delay_seconds=1.0)
    pod = api.pod()
    first = world.begin(pod, seconds=0.5)
    await until(lambda: posts() == 1)
    second = world.begin(pod, seconds=10)
    assert (await refused(first)).reason is BindReason.DEADLINE
    assert await second is BindResult.BOUND
    assert posts() == 1


async def test_no_more_binds_run_than_allowed_and_too_many_are_refused(
    client: KubeClient, api: Api
) -> None:
    world = World(client, concurrency=2, max_waiting=3)
    api.count(*BINDINGS, delay_seconds=0.05)
    pods = [api.pod(f"web-{i}") for i in range(6)]
    binds = [world.begin(pod) for pod in pods[:5]]
    await until(lambda: world.cluster.now == 2)
    assert (await refused(world.bind(pods[5]))).reason is BindReason.OVERLOADED
    assert await asyncio.gather(*binds) == [BindResult.BOUND] * 5
    assert world.cluster.peak == 2
    assert await world.bind(pods[5]) is BindResult.BOUND


async def test_a_bind_whose_turn_comes_too_late_is_not_begun(client: KubeClient, api: Api) -> None:
    world = World(client, concurrency=1)
    posts = api.count(*BINDINGS, delay_seconds=0.5)
    first = world.begin(api.pod("first"))
    await until(lambda: posts() == 1)
    assert (await refused(world.bind(api.pod("late"), seconds=0.1))).reason is BindReason.DEADLINE
    assert await first is BindResult.BOUND
    await world.binder.drain()
    assert api.node_of("late") is None
    assert posts() == 1


def test_of_attempts_that_failed_the_oldest_are_forgotten_first() -> None:
    unresolved = UnresolvedBinds(2)
    for uid in ("a", "b", "c", "d"):
        unresolved.keep(uid, UnresolvedBind(node=f"node-{uid}" if uid != "d" else ""))
    assert [unresolved.take(uid).node for uid in ("a", "b", "c", "d")] == [
        "",
        "node-b",
        "node-c",
        "",
    ]
    assert unresolved.take("b").node == ""


async def test_a_server_that_asks_to_wait_for_too_long_is_not_believed(
    client: KubeClient, api: Api
) -> None:
    world = World(client, retry_after_limit=0.5)
    api.fault(*BINDINGS, status=429, retry_after_seconds=3600)
    assert await world.bind(api.pod()) is BindResult.BOUND


async def test_nothing_is_kept_of_binds_that_have_ended(world: World, api: Api) -> None:
    await world.bind(api.pod())
    await world.binder.drain()
    assert (world.binder.attempts, world.binder._newest) == (set(), {})
    assert world.observed.running() == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port
