"""When is everything decided? Against a real API server; the test plays kube-scheduler."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec
import pytest

from cli.up.cluster import create
from cli.up.following import Following, PodProgress
from moorage.errors import ConfigurationError, causes
from moorage.models import decode_pod
from sandbox.apiserver import ApiServer, Settings
from sandbox.client import Api
from tests.cli.support import PATIENCE, Object, pod
from tools.inprocess.api import Api as State
from tools.planes.objects import node
from tools.waiting import until

PODS = "/api/v1/namespaces/default/pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A cluster, and what kube-scheduler does to it."""

    api: Api
    state: State

    async def create(self, *pods: Object, made: int = 0) -> Following:
        following = Following(self.api, ["moorage"], made)
        await create(self.api, [node("n")])
        for each in await create(self.api, pods):
            following.expect(each)
        return following

    def bind(self, name: str) -> None:
        self.state.bind(name, "n")

    def fail(self, name: str, reason: str, message: str = "why", **status: str) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": reason}
        self.condition(name, {**condition, "message": message}, **status)

    def condition(self, name: str, condition: Object, **status: str) -> None:
        self.state.merge(f"{PODS}/{name}/status", {"status": {"conditions": [condition], **status}})

    def delete(self, name: str) -> None:
        self.state.delete(f"{PODS}/{name}")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with ApiServer() as server, Api(server.url) as api:
        yield World(api=api, state=State(server))


class Settling:
    """A wait for everything to be decided, under way."""

    def __init__(self, following: Following) -> None:
        self.seen: list[int] = []
        self.task = asyncio.create_task(following.until_settled(self.seen.append))

    async def end(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.task

    async def undecided(self) -> bool:
        """Whether it still waits, after more time than a decision would take."""
        done, _ = await asyncio.wait({self.task}, timeout=0.3)
        return not done


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.up.following.QUIET_SECONDS", 0.05)
    monkeypatch.setattr("cli.up.following.POLL_SECONDS", 0.02)


async def test_a_pod_that_is_resized_keeps_what_its_node_has_set_aside() -> None:
    """The dump has it in the status, which the embedded cluster's nodes write again."""
    small = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    obj = pod("old", nodeName="n", containers=[small])
    resize = {"type": "PodResizeInProgress", "status": "True"}
    aside = {"name": "c", "image": "x", "allocatedResources": {"cpu": "6"}}
    obj["status"] = {
        "phase": "Running",
        "conditions": [resize],
        "containerStatuses": [aside | {"resources": {"requests": {"cpu": "6"}}}],
    }
    async with ApiServer(Settings(run_bound_pods=True)) as server, Api(server.url) as api:
        await create(api, [node("n")])
        await create(api, [obj])

        async def runs() -> bool:
            found = await api.request("GET", f"{PODS}/old")
            read = decode_pod(msgspec.json.encode(found))
            assert read.requests == {"cpu": 6000}
            return read.status.phase == "Running"

        await until(runs)


async def test_all_pods_must_have_a_verdict(world: World) -> None:
    following = await world.create(pod("a"), pod("b"))
    settling = Settling(following)
    world.bind("a")
    assert await settling.undecided()
    world.fail("b", "Unschedulable", "0/1 nodes are available")
    await settling.end()
    assert settling.seen == [1, 2]
    a, b = following.pods
    assert (a.outcome, a.node) == (PodProgress.BOUND, "n")
    assert (b.outcome, b.problem) == (PodProgress.UNSCHEDULABLE, "0/1 nodes are available")
    assert not following.failing


async def test_a_failure_counts_once_two_more_attempts_would_have_mended_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.up.following.FAILING_SECONDS", 60.0)
    following = await world.create(pod("a"))
    settling = Settling(following)
    world.fail("a", "SchedulerError", "an error")
    assert await settling.undecided()
    monkeypatch.setattr("cli.up.following.FAILING_SECONDS", 0.05)
    await settling.end()
    assert following.failing


async def test_a_gated_pod_is_held_until_its_gates_go(world: World) -> None:
    gated = pod("a", schedulingGates=[{"name": "example.com/quota"}])
    following = await world.create(gated)
    await Settling(following).end()
    (held,) = following.pods
    assert held.outcome is PodProgress.GATED
    world.state.merge(f"{PODS}/a", {"spec": {"schedulingGates": None}})
    await following.catch_up()
    settling = Settling(following)
    assert await settling.undecided()
    world.bind("a")
    await settling.end()


async def test_a_pod_that_is_deleted_before_anybody_looks_is_not_waited_for(world: World) -> None:
    following = await world.create(pod("a"), pod("b"))
    world.delete("a")
    world.bind("b")
    await Settling(following).end()
    outcomes = {state.name: state.outcome for state in following.pods}
    assert outcomes == {"a": PodProgress.DELETED, "b": PodProgress.BOUND}


async def test_a_pod_is_preempted_if_kube_scheduler_has_marked_it(world: World) -> None:
    following = await world.create(pod("a"), pod("b"))
    for name, reason in (("a", "PreemptionByScheduler"), ("b", "EvictionByEvictionAPI")):
        victim = {"type": "DisruptionTarget", "status": "True", "reason": reason}
        world.condition(name, victim)
    await following.catch_up()
    assert [state.preempted for state in following.pods] == [True, False]


async def test_a_watch_that_is_cut_is_opened_again_and_what_happened_meanwhile_is_told(
    world: World,
) -> None:
    following = await world.create(pod("a"), pod("b"), pod("c"))
    settling = Settling(following)
    await until(lambda: world.state.faults.watches() == 1)
    world.bind("a")
    await until(lambda: settling.seen)
    world.state.fault("list", "pods", status=500)
    world.state.fault("watch", "pods", status=503)
    assert world.state.faults.drop_watches("pods") == 1
    world.delete("b")
    world.bind("c")
    await settling.end()
    outcomes = {state.name: state.outcome for state in following.pods}
    assert outcomes == {"a": PodProgress.BOUND, "b": PodProgress.DELETED, "c": PodProgress.BOUND}


Told = list[tuple[str, PodProgress, str]]


async def tell(following: Following, told: Told) -> None:
    async for state in following.changes():
        told.append((state.name, state.outcome, state.problem))


async def test_later_changes_are_told_once_and_what_stays_pending_until_it_is_asked_for_again(
    world: World,
) -> None:
    following = await world.create(pod("a"), pod("old", nodeName="n"))
    told: Told = []
    telling = asyncio.create_task(tell(following, told))
    await create(world.api, [pod("b")])
    world.fail("a", "Unschedulable", "1 too hot")
    world.fail("a", "Unschedulable", "2 too hot")
    world.bind("b")
    await until(lambda: len(told) == 2)
    assert told == [("a", PodProgress.UNSCHEDULABLE, "1 too hot"), ("b", PodProgress.BOUND, "")]
    following.ask_again()
    world.fail("a", "Unschedulable", "1 too small")
    await until(lambda: len(told) == 3)
    assert told[2] == ("a", PodProgress.UNSCHEDULABLE, "1 too small")
    world.delete("a")
    await until(lambda: len(told) == 4)
    telling.cancel()
    assert [state.name for state in following.pods] == ["b"]


async def test_an_object_that_the_api_server_refuses_is_named(world: World) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await world.create(pod("Not_A_Name"))
    (error,) = causes(caught.value)
    assert isinstance(error, ConfigurationError)
    assert str(error).startswith("the API server refuses Pod Not_A_Name: ")


async def test_namespaces_and_priority_classes_may_be_there_already(world: World) -> None:
    twice = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}] * 2
    await create(world.api, twice)


async def test_a_pod_whose_scheduler_does_not_run_is_not_waited_for(world: World) -> None:
    following = await world.create(pod("a", schedulerName="nobody"), pod("b"))
    settling = Settling(following)
    assert await settling.undecided()
    world.bind("b")
    await settling.end()
    a, b = following.pods
    assert (a.outcome, b.outcome) == (PodProgress.UNSERVED, PodProgress.BOUND)


async def test_pods_that_controllers_make_are_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.up.following.QUIET_SECONDS", 60.0)
    following = await world.create(pod("a", nodeName="n"), made=1)
    assert following.expected == 1
    settling = Settling(following)
    assert await settling.undecided()
    await create(world.api, [pod("web-1")])
    assert await settling.undecided()
    world.bind("web-1")
    await settling.end()
    assert [state.name for state in following.pods] == ["web-1"]
