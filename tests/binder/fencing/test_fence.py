"""Epochs and barriers: what an earlier gateway decided is not written after a later one began."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

import pytest

from moorage import Allow, Binding, BindPlugin, Refusal, Wait
from moorage_host.kube import KubeClient
from services.binder.binding.fence import BarrierResult
from services.binder.binding.outcomes import BindReason, BindResult
from tools.inprocess.api import Api, Object
from tools.inprocess.binder import BINDINGS, World, binding_of, policy_of, refused
from tools.waiting import until

READS = ("get", "pods")
FOREVER = 100


class Holds(BindPlugin):
    """Waits before the bind."""

    inside: ClassVar[asyncio.Event]

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        self.inside.set()
        await asyncio.Event().wait()
        return None


class Gang(BindPlugin):
    """Waits for others."""

    def permit_key(self, binding: Binding) -> str:
        return "gang"

    async def permit(self, binding: Binding) -> Allow | Wait:
        return Wait(FOREVER, "the gang")


class Marks(BindPlugin):
    """Remembers the pods that were bound."""

    bound: ClassVar[list[str]] = []

    async def post_bind(self, binding: Binding) -> None:
        self.bound.append(binding.pod.name)


@pytest.fixture
def world(client: KubeClient) -> World:
    Holds.inside = asyncio.Event()
    Marks.bound = []
    return World(client, plugins=(Holds, Gang, Marks))


async def running(
    world: World, number: int, bind: Coroutine[Any, Any, BindResult]
) -> asyncio.Task[BindResult]:
    """Begin a bind, and wait until it does nothing that is not waiting."""
    task = asyncio.create_task(bind)
    await until(lambda: world.observed.running() == number)
    return task


def nodes(fenced: BarrierResult) -> list[tuple[str, str, bool]]:
    return [(bind.name, bind.node, bind.unknown) for bind in fenced.binds]


async def test_binds_of_lower_epochs_are_refused_and_by_hand_never(world: World, api: Api) -> None:
    await world.binder.fence.barrier(7, "second")
    error = await refused(world.bind(api.pod(), epoch=6))
    assert error.reason is BindReason.STALE_EPOCH
    assert "decided in epoch 6, and epoch 7 of second has begun" in str(error)
    assert await world.bind(api.pod("equal"), epoch=7) is BindResult.BOUND
    assert await world.bind(api.pod("by-hand")) is BindResult.BOUND
    assert (api.node_of(), world.observed.stages) == (None, ["arrival"])


async def test_a_bind_with_a_higher_epoch_fences_the_lower_ones(world: World, api: Api) -> None:
    assert await world.bind(api.pod("first"), epoch=3) is BindResult.BOUND
    assert await world.bind(api.pod("second"), epoch=5) is BindResult.BOUND
    assert (await refused(world.bind(api.pod(), epoch=4))).reason is BindReason.STALE_EPOCH
    assert world.observed.epochs == [3, 5]


async def in_a_queue(world: World, api: Api, pod: Object) -> asyncio.Task[BindResult]:
    posts = api.count(*BINDINGS, delay_seconds=1)
    for number in range(64):
        world.begin(api.pod(f"slow-{number}"))
    await until(lambda: posts() == 64)
    return await running(world, 65, world.bind(pod, epoch=1))


async def behind_another_bind(world: World, api: Api, pod: Object) -> asyncio.Task[BindResult]:
    posts = api.count(*BINDINGS, delay_seconds=1, status=403)
    world.begin(pod, "node-b", seconds=2)
    await until(lambda: posts() == 1)
    return await running(world, 2, world.bind(pod, epoch=1))


async def in_pre_bind(world: World, api: Api, pod: Object) -> asyncio.Task[BindResult]:
    bind = world.begin(pod, epoch=1, policy=policy_of("Holds", time_budget_seconds=20.0))
    await Holds.inside.wait()
    return bind


async def at_permit(world: World, api: Api, pod: Object) -> asyncio.Task[BindResult]:
    bind = world.begin(pod, epoch=1, policy=policy_of("Gang"))
    await until(lambda: world.observed.now_waiting == 1)
    return bind


async def between_two_posts(world: World, api: Api, pod: Object) -> asyncio.Task[BindResult]:
    api.fault(*BINDINGS, status=429, retry_after_seconds=FOREVER // 2)
    bind = world.begin(pod, epoch=1, seconds=FOREVER)
    await until(lambda: world.observed.retries == ["429"])
    return bind


async def before_retry_after(world: World, api: Api, pod: Object) -> asyncio.Task[BindResult]:
    api.fault(*BINDINGS, status=429, retry_after_seconds=3)
    await refused(world.bind(pod, epoch=1, seconds=1))
    return await running(world, 1, world.bind(pod, epoch=1))


async def while_reading_the_pod(world: World, api: Api, pod: Object) -> asyncio.Task[BindResult]:
    reads = api.count(*READS, delay_seconds=FOREVER)
    bind = world.begin(pod, epoch=1, policy=policy_of("Marks"))
    await until(lambda: reads() == 1)
    return bind


async def before_its_first_step(world: World, api: Api, pod: Object) -> asyncio.Task[BindResult]:
    deadline = time.monotonic() + 10
    return world.binder.begin(binding_of(pod), deadline=deadline, epoch=1).task


Waiting = Callable[[World, Api, Object], Coroutine[Any, Any, asyncio.Task[BindResult]]]


@pytest.mark.parametrize(
    "waiting",
    [
        in_a_queue,
        behind_another_bind,
        in_pre_bind,
        at_permit,
        between_two_posts,
        before_retry_after,
        while_reading_the_pod,
        before_its_first_step,
    ],
)
async def test_a_bind_that_waits_when_a_higher_epoch_comes_is_given_up_at_once(
    world: World, api: Api, waiting: Waiting
) -> None:
    bind = await waiting(world, api, api.pod())
    posts = list(world.cluster.posts)
    await world.binder.fence.barrier(2, "second")
    await until(bind.done)
    assert (await refused(bind)).reason is BindReason.STALE_EPOCH
    assert world.observed.stages == ["waiting"]
    assert world.observed.now_waiting == 0
    api.faults.clear()
    await world.binder.drain()
    assert (world.cluster.posts, api.node_of()) == (posts, None)
    assert (world.binder.attempts, world.binder._newest) == (set(), {})


async def test_a_plugin_that_ignores_its_cancellation_does_not_get_the_pod_bound(
    client: KubeClient, api: Api
) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    class Deaf(BindPlugin):
        """Goes on when it is cancelled."""

        async def pre_bind(self, binding: Binding) -> Refusal | None:
            entered.set()
            while not leave.is_set():
                try:
                    await leave.wait()
                except asyncio.CancelledError:
                    leave.set()
            return None

    world = World(client, plugins=(Deaf,))
    bind = world.begin(api.pod(), epoch=1, policy=policy_of("Deaf"))
    await entered.wait()
    await world.binder.fence.barrier(2, "second")
    assert (await refused(bind)).reason is BindReason.STALE_EPOCH
    assert api.node_of() is None


async def test_a_barrier_waits_for_a_write_under_way_and_returns_it(world: World, api: Api) -> None:
    assert await world.bind(api.pod("before"), "node-b", epoch=1) is BindResult.BOUND
    posts = api.count(*BINDINGS, delay_seconds=0.5)
    bind = world.begin(api.pod(), epoch=1, policy=policy_of("Marks"))
    await until(lambda: posts() == 1)
    fenced = await world.binder.fence.barrier(2, "second")
    assert api.node_of() == "node-a"
    assert nodes(fenced) == [("before", "node-b", False), ("web", "node-a", False)]
    assert await bind is BindResult.BOUND
    await world.binder.drain()
    assert Marks.bound == ["web"]


@pytest.mark.parametrize(
    ("effects", "unread", "seconds", "written"),
    [
        pytest.param({"drop": True}, 0, 10, [("web", "node-a", True)], id="no answer"),
        pytest.param({"done": True, "drop": True}, 2, 10, [("web", "node-a", False)], id="done"),
        pytest.param({"status": 429, "retry_after_seconds": 0}, 0, 10, [], id="refused"),
        pytest.param({"delay_seconds": FOREVER}, 0, 1, [("web", "node-a", True)], id="silence"),
    ],
)
async def test_a_write_under_way_when_a_barrier_comes_is_looked_for_and_not_repeated(
    world: World,
    api: Api,
    effects: Object,
    unread: int,
    seconds: float,
    written: list[tuple[str, str, bool]],
) -> None:
    api.fault(*BINDINGS, **{"delay_seconds": 0.3, **effects})
    posts = api.count(*BINDINGS)
    for _ in range(unread):
        api.fault(*READS, status=500)
    bind = world.begin(api.pod(), epoch=1, seconds=seconds)
    await until(lambda: world.cluster.now == 1)
    fenced = await world.binder.fence.barrier(2, "second")
    assert nodes(fenced) == written
    if "done" in effects:
        assert await bind is BindResult.BOUND
    else:
        assert (await refused(bind)).reason is BindReason.STALE_EPOCH
    assert (posts(), api.node_of()) == (0, "node-a" if "done" in effects else None)


async def test_writes_of_no_epoch_and_of_the_callers_own_are_returned_but_not_awaited(
    world: World, api: Api
) -> None:
    await world.binder.fence.barrier(2, "second")
    posts = api.count(*BINDINGS, delay_seconds=1)
    own = world.begin(api.pod("own"), epoch=2)
    by_hand = world.begin(api.pod("by-hand"))
    await until(lambda: posts() == 2)
    fenced = await world.binder.fence.barrier(2, "second")
    assert sorted(nodes(fenced)) == [("by-hand", "node-a", True), ("own", "node-a", True)]
    assert set(await asyncio.gather(own, by_hand)) == {BindResult.BOUND}
    fenced = await world.binder.fence.barrier(2, "second")
    assert sorted(nodes(fenced)) == [("by-hand", "node-a", False), ("own", "node-a", False)]


async def test_the_later_of_two_barriers_wins_and_the_earlier_learns_it(
    world: World, api: Api
) -> None:
    posts = api.count(*BINDINGS, delay_seconds=0.5)
    bind = world.begin(api.pod(), epoch=1)
    await until(lambda: posts() == 1)
    first = asyncio.create_task(world.binder.fence.barrier(2, "second"))
    again = asyncio.create_task(world.binder.fence.barrier(2, "second"))
    await until(lambda: world.binder.fence.epoch == 2)
    last = await world.binder.fence.barrier(3, "third")
    for lost in (await first, await again):
        assert (lost.epoch, lost.holder, nodes(lost), lost.memory) == (3, "third", [], 0)
    assert (last.epoch, last.holder) == (3, "third")
    assert nodes(last) == [("web", "node-a", False)]
    assert await bind is BindResult.BOUND


async def test_an_epoch_has_one_holder(world: World, api: Api) -> None:
    assert (await world.binder.fence.barrier(2, "second")).holder == "second"
    lost = await world.binder.fence.barrier(2, "other")
    assert (lost.epoch, lost.holder, lost.memory) == (2, "second", 0)
    assert (await world.binder.fence.barrier(1, "second")).epoch == 2
    await world.bind(api.pod(), epoch=4)
    lost = await world.binder.fence.barrier(4, "second")
    assert (lost.epoch, lost.holder, nodes(lost)) == (4, "", [])
    held = await world.binder.fence.barrier(5, "second")
    assert nodes(held) == [("web", "node-a", False)]


async def test_a_bind_of_a_higher_epoch_for_the_same_node_does_not_join(
    world: World, api: Api
) -> None:
    pod = api.pod()
    bind = world.begin(pod, epoch=1, policy=policy_of("Holds", time_budget_seconds=20.0))
    await Holds.inside.wait()
    assert await world.bind(pod, epoch=2) is BindResult.BOUND
    assert (await refused(bind)).reason is BindReason.STALE_EPOCH


async def test_a_bind_by_hand_is_not_given_up(world: World, api: Api) -> None:
    posts = api.count(*BINDINGS, delay_seconds=0.1, status=429, retry_after_seconds=0)
    bind = world.begin(api.pod())
    await until(lambda: posts() > 0)
    await world.binder.fence.barrier(2, "second")
    api.faults.clear()
    assert await bind is BindResult.BOUND
