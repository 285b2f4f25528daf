"""Rules across pods hold without claims: nodes are checked again at the bind."""

from collections import Counter

import pytest

from tests.scenarios.world import PODS, World
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = tuple(f"n{i}" for i in range(24))
APP = {"app": "web"}


async def assert_apart(world: World) -> None:
    """Wait until all pods are bound, each on a node of its own."""
    places = await world.bound()
    assert len(set(places.values())) == len(places)


async def test_a_burst_does_not_break_a_rule_across_pods(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("alone"):
        await world.create(*(pod(f"p{i}", "alone", labels=APP) for i in range(20)))
        await assert_apart(world)


async def test_two_schedulers_with_one_gateway_do_not_break_it_either(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    profiles = ("alone", "alone-too")
    async with world.scheduler("alone", name="first"), world.scheduler("alone-too", name="second"):
        await world.create(*(pod(f"p{i}", profiles[i % 2], labels=APP) for i in range(20)))
        await assert_apart(world)


async def test_a_pod_that_is_nominated_for_a_node_keeps_it_free(world: World) -> None:
    """As kube-scheduler nominates a pod whose volumes take minutes; here nobody schedules it."""
    await world.nodes(node("n0"), node("n1"))
    await world.create(pod("nominated", "nobody", labels=APP))
    status = {"status": {"nominatedNodeName": "n0"}}
    (await world.request("PATCH", f"{PODS}/nominated/status", status)).check()
    async with world.scheduler("alone"):
        await world.create(pod("p", "alone", labels=APP))
        assert (await world.bound("p"))["p"] == "n1"


async def test_two_schedulers_of_the_same_pods_do_not_break_it_either(world: World) -> None:
    """Each tries every pod; half of the pods find no node."""
    names = NAMES[:12]
    await world.nodes(*map(node, names))
    apps = [f"app{i % 3}" for i in range(6 * len(names))]
    async with world.scheduler("alone", name="first"), world.scheduler("alone", name="second"):
        pods = (pod(f"p{i}", "alone", labels={"app": app}) for i, app in enumerate(apps))
        await world.create(*pods)
        await world.placed(3 * len(names))
        places = await world.places()
        for name in (name for name, place in places.items() if not place):
            await world.condition(name, "Unschedulable")
        found = Counter(
            (obj["metadata"]["labels"]["app"], obj["spec"].get("nodeName", ""))
            for obj in (await world.pods()).values()
        )
    assert {key: count for key, count in found.items() if key[1] and count > 1} == {}
