"""What fails, and what ends: the first line has the true cause."""

import pytest

from tests.scenarios.explain.asking import Record, named, until_headline
from tests.scenarios.explain.conftest import EXPLAINED
from tests.scenarios.world import PODS, World
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = ("n1", "n2", "n3")


async def test_plugins_that_fail(world: World, record_property: Record) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler():
        await world.create(
            pod("failing", fail="no license"),
            pod("unscored", score={"n1": "no number"}),
            pod("alone", reject={"n2": "full", "n3": "full"}, score={"n1": "no number"}),
        )
        count = await named(
            world,
            {
                "failing": "is pending: the attempt failed: .*no license.*; in backoff until about "
                r"\d\d:\d\d:\d\d$",
                "unscored": "kube-scheduler chose among 3 nodes: Moorage gave no scores since "
                "Steered failed: ValueError",
                "alone": "is on n1: one node of 3 was left: Steered rejected 2 of 3: full",
            },
        )
    record_property(EXPLAINED, count)


async def test_services_that_are_down(world: World, record_property: Record) -> None:
    await world.nodes(*map(node, NAMES))
    programs = world.services.programs
    await programs["filter"].kill()
    async with world.scheduler(httpTimeout="2s"):
        await world.create(pod("unfiltered"))
        down = "is pending: the attempt failed: filter service is not available"
        count = await named(world, {"unfiltered": down})
        await programs["filter"].start()
        await world.bound("unfiltered")

        await programs["binder"].kill()
        await world.create(pod("unbound"))
        count += await named(world, {"unbound": "is pending: the bind to n. failed: "})
        await programs["binder"].start()
        await world.bound("unbound")

        programs["gateway"].hold()
        await world.create(pod("unanswered"))
        await world.condition("unanswered", "SchedulerError")
        late = "is pending: kube-scheduler failed: Post .*context deadline exceeded"
        count += await named(world, {"unanswered": late})
        programs["gateway"].go_on()
        await world.bound("unanswered")

        await programs["gateway"].kill()
        await world.create(pod("uncalled"))
        refused = "is pending: kube-scheduler failed: Post .*connect: connection refused"
        count += await named(world, {"uncalled": refused})
        await programs["gateway"].start()
        await world.bound("uncalled")
    record_property(EXPLAINED, count)


async def test_pods_that_end(world: World, record_property: Record) -> None:
    await world.nodes(*map(node, NAMES))
    only = {"n1": "no", "n3": "no"}
    async with world.scheduler():
        await world.create(
            pod("going", finalizers=("example.com/slow",), reject={**only, "n2": "no"}),
            pod("gone", reject=only),
        )
        await world.bound("gone")
        await world.condition("going", "Unschedulable")
        for name in ("going", "gone"):
            (await world.request("DELETE", f"{PODS}/{name}")).check()
        count = await named(
            world,
            {
                "going": "is pending: it is being deleted",
                "gone": "is gone: it was bound to n2: one node of 3 was left",
            },
        )
    record_property(EXPLAINED, count)


async def test_one_node_is_offered(world: World, record_property: Record) -> None:
    await world.nodes(node("n1"), node("n2", cpu="1"))
    async with world.scheduler():
        await world.create(pod("large", cpu="2"))
        await world.bound("large")
        await until_headline(world, "large", "is on n1: kube-scheduler offered one node only")
    record_property(EXPLAINED, 1)
