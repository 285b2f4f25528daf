"""What docs/how-to/exercises.md shows works, on a kube-scheduler without Moorage."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.placement.placeholder import ISOLATED, placeholder, task
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import node

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

STOCK = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
}
SMALL = {"containers": [{"name": "main", "image": "app:1"}]}
NO_PLACEHOLDER = "didn't match pod affinity rules"


@pytest_asyncio.fixture(loop_scope="session")
async def world(bare: World) -> AsyncIterator[World]:
    """A world with a kube-scheduler, without nodes and pods before and after."""
    try:
        async with bare.configured_scheduler("stock", STOCK):
            yield bare
    finally:
        await bare.empty()


def named(name: str, cpu: str = "4") -> Object:
    return node(name, cpu, labels={"kubernetes.io/hostname": name})


async def test_pods_wait_for_their_placeholder_and_go_to_its_node(world: World) -> None:
    await world.create(named("n1"), named("n2"), named("n3"))
    await world.create(task("build-1", "compile"), task("build-1", "check"))
    for name in ("build-1-compile", "build-1-check"):
        assert NO_PLACEHOLDER in await world.condition(name, "Unschedulable")
    await world.create(placeholder("build-1"))
    places = await world.bound()
    assert len(places) == 3
    assert len(set(places.values())) == 1
    await world.create(*(task("build-1", f"later-{i}") for i in range(3)))
    assert set((await world.bound()).values()) == set(places.values())


async def test_runs_spread_over_the_nodes_and_share_them_at_need(world: World) -> None:
    await world.create(named("n1"), named("n2"))
    places = {}
    for run in ("build-1", "build-2", "build-3"):
        (made,) = await world.create(placeholder(run))
        places = await world.bound(made["metadata"]["name"])
    assert places["placeholder-build-1-0"] != places["placeholder-build-2-0"]
    await world.create(*(task(f"build-{i}", "compile") for i in (1, 2, 3)))
    places = await world.bound()
    for run in ("build-1", "build-2", "build-3"):
        assert places[f"{run}-compile"] == places[f"placeholder-{run}-0"]


async def test_isolated_runs_share_no_node(world: World) -> None:
    await world.create(named("n1"), named("n2"))
    runs = ("build-1", "build-2", "build-3")
    await world.create(*(placeholder(run, affinity=ISOLATED) for run in runs))
    await world.placed(2)
    places = await world.places()
    assert sorted(places.values()) == ["", "n1", "n2"]
    (left,) = (run for run in runs if not places[f"placeholder-{run}-0"])
    message = await world.condition(f"placeholder-{left}-0", "Unschedulable")
    assert "2 node(s) didn't match pod anti-affinity rules" in message
    await world.create(*(task(run, "compile") for run in runs))
    assert NO_PLACEHOLDER in await world.condition(f"{left}-compile", "Unschedulable")
    for run in set(runs) - {left}:
        await world.bound(f"{run}-compile")
        places = await world.places()
        assert places[f"{run}-compile"] == places[f"placeholder-{run}-0"]


async def test_without_room_for_the_placeholder_all_wait(world: World) -> None:
    await world.create(named("n1", "49m"), named("n2", "49m"))
    await world.create(placeholder("build-1"), task("build-1", "compile", **SMALL))
    assert "2 Insufficient cpu" in await world.condition("placeholder-build-1-0", "Unschedulable")
    assert NO_PLACEHOLDER in await world.condition("build-1-compile", "Unschedulable")
    await world.create(named("n3"))
    assert set((await world.bound()).values()) == {"n3"}


async def test_a_placeholder_holds_no_resources_and_is_needed_until_the_end(world: World) -> None:
    await world.create(named("n1", "600m"))
    await world.create(placeholder("build-1"))
    await world.bound()
    await world.create(named("n2"), task("build-1", "compile"))
    await world.bound("build-1-compile")
    await world.create(task("build-1", "check"))
    message = await world.condition("build-1-check", "Unschedulable")
    assert "1 Insufficient cpu" in message
    assert NO_PLACEHOLDER in message
    now = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    (await world.request("DELETE", f"{PODS}/placeholder-build-1-0", now)).check()
    await world.create(task("build-1", "late", **SMALL))
    message = await world.condition("build-1-late", "Unschedulable")
    assert f"2 node(s) {NO_PLACEHOLDER}" in message
    assert (await world.places())["build-1-compile"] == "n1"
