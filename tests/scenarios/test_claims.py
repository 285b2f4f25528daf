"""Pods that must go where others of their run go, however fast they come."""

import pytest

from moorage import ENDED_PODS
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = ("n1", "n2", "n3", "n4")
OCCUPIED = "node(s) already ran another PipelineRun"


def task(name: str, run: str, profile: str = "colocated") -> Object:
    return pod(name, profile, labels={"tekton.dev/pipelineRun": run})


async def places_by_run(world: World) -> dict[str, set[str]]:
    """Wait until all pods are bound; return the nodes of each run, the first part of the names."""
    found: dict[str, set[str]] = {}
    for name, place in (await world.bound()).items():
        found.setdefault(name.partition("-")[0], set()).add(place)
    return found


async def test_the_pods_of_a_run_that_come_at_once_share_a_node(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("colocated"):
        await world.create(*(task(f"a-{i}", "a") for i in range(8)))
        places = await places_by_run(world)
    assert len(places["a"]) == 1
    decision = await world.decision("a-0")
    assert decision["claim"]["plugins"] == ["OneNodePerPipelineRun"]
    assert decision["claim"]["node"] == decision["bind"]["node"]


async def test_runs_whose_pods_come_in_turn_stay_apart(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("isolated"):
        await world.create(*(task(f"{r}-{i}", r, "isolated") for i in range(4) for r in "abc"))
        places = await places_by_run(world)
    assert [len(nodes) for nodes in places.values()] == [1, 1, 1]
    assert len(set.union(*places.values())) == 3


async def test_a_run_waits_while_others_have_all_nodes(world: World) -> None:
    await world.nodes(*map(node, NAMES[:3]))
    async with world.scheduler("isolated"):
        await world.create(*(task(f"{r}-1", r, "isolated") for r in "abc"))
        await world.bound()
        await world.create(task("d-1", "d", "isolated"))
        assert f"0/3 nodes are available: 3 {OCCUPIED}." in await world.event("d-1")

        (await world.request("DELETE", f"{PODS}/a-1")).check()
        await world.bound("d-1")


async def test_two_schedulers_with_one_gateway_keep_a_run_together(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    profiles = ("colocated", "isolated")
    async with (
        world.scheduler("colocated", name="first"),
        world.scheduler("isolated", name="second"),
    ):
        await world.create(*(task(f"a-{i}", "a", profiles[i % 2]) for i in range(8)))
        places = await places_by_run(world)
    assert len(places["a"]) == 1


async def test_runs_whose_pods_have_ended_keep_their_node(world: World) -> None:
    await world.nodes(*map(node, NAMES[:2]))
    async with world.scheduler("remembering"):
        await world.create(task("a-1", "a", "remembering"))
        first = (await world.bound())["a-1"]
        done = {"status": {"phase": "Succeeded"}}
        (await world.request("PATCH", f"{PODS}/a-1/status", done)).check()

        async def seen() -> bool:
            return await world.metric("moorage_cache_size", type=str(ENDED_PODS)) == 1

        await world.until(seen)
        await world.create(task("b-1", "b", "remembering"), task("a-2", "a", "remembering"))
        places = await world.bound("b-1", "a-2")
    assert places["a-2"] == first
    assert places["b-1"] != first


async def test_pods_that_come_at_once_get_a_slot_each_and_the_next_one_that_is_given_back(
    world: World,
) -> None:
    await world.nodes(*map(node, NAMES[:2]))
    names = [f"p{number}" for number in range(5)]
    async with world.scheduler("slotted"):
        await world.create(*(pod(name, "slotted") for name in names))
        await world.placed(4)
        places = await world.places()
        waiting = next(name for name in names if not places[name])
        await world.event(waiting, "no slot is free")
        gone = next(name for name in names if places[name])
        (await world.request("DELETE", f"{PODS}/{gone}?gracePeriodSeconds=0")).check()
        await world.bound(waiting)
        left = await world.pods()
    slots = [
        (obj["spec"]["nodeName"], obj["metadata"]["annotations"]["example.com/slot"])
        for obj in left.values()
    ]
    assert sorted(slots) == [(name, slot) for name in NAMES[:2] for slot in ("left", "right")]


async def test_no_more_pods_than_seats_are_bound_until_one_ends(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    labels = {"example.com/license": "cad"}
    async with world.scheduler("seated"):
        await world.create(*(pod(f"p{i}", "seated", labels=labels) for i in range(4)))
        await world.placed(2)
        places = await world.places()
        first, second = (name for name, place in places.items() if not place)
        await world.event(first, "all seats of the pod's license are taken")
        await world.event(second, "all seats of the pod's license are taken")
        gone = next(name for name, place in places.items() if place)
        (await world.request("DELETE", f"{PODS}/{gone}?gracePeriodSeconds=0")).check()
        await world.until(lambda: _are_bound(world, gone, 2))
        places = await world.places()
    assert sum(map(bool, places.values())) == 2
    assert len(places) == 3


async def _are_bound(world: World, gone: str, count: int) -> bool:
    places = await world.places()
    return gone not in places and sum(map(bool, places.values())) == count
