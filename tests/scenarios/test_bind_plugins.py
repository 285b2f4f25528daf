"""Bind plugins that wait for other pods, and that use what a filter has chosen."""

import pytest

from tests.scenarios.world import World
from tools.planes.objects import NAMESPACE, node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
GANG = [f"worker-{number}" for number in range(5)]


async def test_the_pods_of_a_gang_are_bound_together_or_not_at_all(world: World) -> None:
    labels = {"gang": "train", "gang-size": "5"}
    await world.nodes(*(node(name, annotations={"device": "0"}) for name in ("n1", "n2")))
    async with world.scheduler("grouped"):
        # Each has its attempt, and its backoff, at another time than the ones before it.
        for name in GANG[:4]:
            await world.create(pod(name, "grouped", labels=labels))
            await world.event(name, "pods of the gang are missing")
        assert not any((await world.places()).values())
        assert not world.proxy.binds
        await world.create(pod(GANG[4], "grouped", labels=labels))
        places = await world.bound(*GANG)
        decision = await world.decision(GANG[0])

    assert all(places.values())
    ran = {(each["plugin"], each["point"]): each for each in decision["bind"]["plugins"]}
    assert [*ran] == [("Together", "Permit"), ("Device", "PreBind")]
    assert all(each["result"] == "ok" and each["seconds"] > 0 for each in ran.values())


async def test_one_of_a_gang_that_cannot_be_bound_keeps_all_from_being_bound(world: World) -> None:
    labels = {"gang": "ring", "gang-size": "3"}
    await world.nodes(node("n1", annotations={"device": "0"}))
    good = [pod(name, "grouped", labels=labels) for name in ("r0", "r1")]
    bad = pod("r2", "grouped", labels={**labels, "broken": "yes"})
    async with world.scheduler("grouped"):
        await world.create(*good, bad)
        kept_back = await world.event("r0", "was not bound, as all or none are: ")
        assert kept_back.endswith("the device is broken")
        assert not any((await world.places()).values())
        mended = {"metadata": {"labels": {"broken": None}}}
        (await world.request("PATCH", f"{PODS}/r2", mended)).check()
        await world.bound("r0", "r1", "r2")


async def test_a_bind_gets_what_the_filter_kept_for_its_node(world: World) -> None:
    await world.nodes(*(node(f"n{i}", annotations={"device": f"gpu-{i}"}) for i in range(3)))
    names = [f"p{number}" for number in range(8)]  # equal pods: the cache must not hide any
    async with world.scheduler("grouped"):
        await world.create(*(pod(name, "grouped") for name in names))
        await world.bound(*names)
        pods = await world.pods()

    for obj in pods.values():
        device = obj["metadata"]["annotations"]["example.com/device"]
        assert device == f"gpu-{obj['spec']['nodeName'][1:]}"


async def test_a_bind_sees_the_pods_that_were_placed_before_it(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    steps = {"first": "n1", "second": "n1", "third": "n2"}
    async with world.scheduler("neighbouring"):
        for name, place in steps.items():
            other = {"n1": "n2", "n2": "n1"}[place]
            await world.create(pod(name, "neighbouring", reject={other: "not here"}))
            await world.bound(name)
        pods = await world.pods()

    seen = {name: pods[name]["metadata"]["annotations"]["example.com/pods"] for name in steps}
    assert seen == {"first": "0 of 0", "second": "1 of 1", "third": "0 of 2"}
