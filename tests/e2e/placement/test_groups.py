"""Pod groups of Kubernetes are placed as a whole or not at all, and block nobody meanwhile."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.scenarios.test_preemption import priority_class
from tests.scenarios.world import PODS, World, profiles
from tools.planes.embedded import Object
from tools.planes.objects import NAMESPACE, node, pod
from tools.planes.real import POD_GROUPS, WITH_GROUPS, RealPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

GROUPS = f"/apis/{POD_GROUPS}/namespaces/{NAMESPACE}/podgroups"
URGENT = {"priorityClassName": "urgent"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    plane = RealPlane(tmp_path_factory.mktemp("groups"), *WITH_GROUPS, profiles=profiles())
    async with World.started(plane) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def world(shared_world: World) -> AsyncIterator[World]:
    """A world that is empty before and after."""
    try:
        yield shared_world
    finally:
        await shared_world.clear()


async def group(world: World, name: str, count: int, **more: str) -> None:
    """Create a group that needs so many pods at once."""
    spec = {"schedulingPolicy": {"gang": {"minCount": count}}, **more}
    made = {"apiVersion": POD_GROUPS, "kind": "PodGroup", "spec": spec}
    (await world.request("POST", GROUPS, {**made, "metadata": {"name": name}})).check()


def run(name: str, profile: str = "isolated", cpu: str = "10m", **more: Any) -> Object:
    """Return a pod of a run of its own; profile "isolated" lets it share its node with no other."""
    return pod(name, profile, cpu, labels={"tekton.dev/pipelineRun": name}, **more)


def member(name: str, of: str, *how: str, spec: Object | None = None, **steps: Any) -> Object:
    """Return a pod of a group, of a run of its own."""
    spec = {"schedulingGroup": {"podGroupName": of}, **(spec or {})}
    return run(name, *how, spec=spec, **steps)


async def calls(world: World, verb: str) -> float:
    """Return how often kube-scheduler has asked Moorage."""
    return await world.metric("moorage_extender_requests_total", verb=verb)


async def feasible(world: World, name: str) -> int:
    """Return how many nodes suited a pod, as the filters said last."""
    found: list[int] = [
        e["filter"]["feasible"] for e in await world.decisions(name) if "filter" in e
    ]
    return found[0]


async def test_a_group_that_does_not_fit_holds_no_node(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    async with world.scheduler("isolated"):
        await group(world, "three", 3)
        await world.create(*(member(f"m{i}", "three") for i in range(3)))
        await world.condition("m0", "Unschedulable")

        async def tried_again() -> bool:
            label = {"metadata": {"labels": {"example.com/tried": str(time.time())}}}
            (await world.request("PATCH", "/api/v1/nodes/n1", label)).check()
            return await world.metric("moorage_claims_total") >= 6

        # From the second pass on, the members' conditions stay as they are.
        await world.until(tried_again, 60)
        await world.create(run("single"))
        await world.bound("single", patience=60)
        places = await world.places()
        assert not any(place for name, place in places.items() if name != "single")

        async def nothing_left() -> bool:
            return await world.metric("moorage_cache_size", type="claims") == 0

        await world.until(nothing_left, 60)


async def test_a_group_that_fits_is_bound_as_a_whole(world: World) -> None:
    await world.nodes(*(node(f"n{i}") for i in range(4)))
    async with world.scheduler("isolated"):
        await group(world, "four", 4)
        await world.create(*(member(f"m{i}", "four") for i in range(4)))
        places = await world.bound()
        assert len(set(places.values())) == 4
        # Nothing was asked again in vain: each claim held until its bind.
        assert await world.metric("moorage_bind_checks_total", outcome="rejected") == 0


async def test_one_error_fails_the_attempt_of_the_whole_group(world: World) -> None:
    await world.nodes(node("n1"))
    async with world.scheduler():
        await group(world, "failing", 3)
        # The oldest comes first.
        await world.create(member("m0", "failing", "steered"))
        await world.create(member("m1", "failing", "steered", fail="no database"))
        await world.create(member("m2", "failing", "steered"))
        failed = await world.condition("m1", "SchedulerError")
        assert failed.startswith("filter service: plugin Steered failed in prepare: RuntimeError: ")
        for name in ("m0", "m2"):
            message = await world.condition(name, "SchedulerError")
            assert message == f"failed to schedule other pod from a pod group: {failed}"
        assert await feasible(world, "m0") == 1
        assert not any((await world.places()).values())
        works = {"metadata": {"annotations": {"steered/fail": None}}}
        (await world.request("PATCH", f"{PODS}/m1", works)).check()
        assert await world.bound() == {"m0": "n1", "m1": "n1", "m2": "n1"}


async def test_pods_are_evicted_for_a_group_where_the_filters_accept_its_members(
    world: World,
) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(*(node(f"n{i}", cpu="1") for i in range(3)))
    asked = await calls(world, "preempt")
    async with world.scheduler():
        await world.create(*(pod(f"small-{i}", cpu="900m") for i in range(3)))
        (spared,) = (name for name, place in (await world.bound()).items() if place == "n0")
        await group(world, "evicting", 2, **URGENT)
        steps = {"spec": URGENT, "reject": {"n0": "not for you"}}
        members = (member(f"m{i}", "evicting", "steered", "800m", **steps) for i in range(2))
        await world.create(*members)
        places = await world.bound("m0", "m1")

    assert places.pop(spared) == "n0"
    assert sorted(places) == ["m0", "m1"]
    assert sorted(places.values()) == ["n1", "n2"]
    assert await calls(world, "preempt") == asked


@pytest.mark.parametrize("profile", ["isolated", "fitting"])
async def test_nobody_is_evicted_for_a_group_while_a_rule_counts_the_victims(
    world: World, profile: str
) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(node("n1", cpu="1"), node("n2", cpu="1"))
    async with world.scheduler(profile):
        await world.create(*(run(f"small-{i}", profile, "900m") for i in range(2)))
        victims = await world.bound()
        name = f"counting-{profile}"
        await group(world, name, 2, **URGENT)
        for i in range(2):  # the oldest comes first
            await world.create(member(f"m{i}", name, profile, "800m", spec=URGENT))
        await world.condition("m0", "Unschedulable")
        # No node has room, so kube-scheduler asks Moorage only after it put the victims aside.
        assert await feasible(world, "m0") == 0
        assert await world.places() == {**victims, "m0": "", "m1": ""}
        for victim in victims:
            asked = await calls(world, "filter")
            (await world.request("DELETE", f"{PODS}/{victim}")).check()

            async def tried_again(asked: float = asked) -> bool:
                return await calls(world, "filter") > asked

            await world.until(tried_again)
        assert set((await world.bound("m0", "m1")).values()) == {"n1", "n2"}
