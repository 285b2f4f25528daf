"""Groups that the plugin Gang places whole or not at all, where the API has no groups."""

import pytest

from cli.gate.gating import Gates
from cli.shared.gateway.client import connected
from cli.shared.gateway.options import GatewayOptions
from moorage_host.kube import connect
from tests.scenarios.test_preemption import priority_class
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")


def members(
    group: str, size: int, *, cpu: str = "4", profile: str = "ganged", **more: str
) -> list[Object]:
    """Return pods of a group, two of which fill a node."""
    labels = {"moorage.io/group": group, "moorage.io/group-size": str(size), **more}
    return [pod(f"{group}-{i}", profile, cpu, labels=labels) for i in range(size)]


async def nothing_held(world: World) -> None:
    """Wait until no pod holds a node without being bound."""

    async def nothing() -> bool:
        return await world.metric("moorage_cache_size", type="claims") == 0

    await world.until(nothing)


async def test_a_group_that_fits_is_bound_as_a_whole(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    before = await world.metric("moorage_bind_checks_total", outcome="rejected")
    async with world.scheduler("ganged"):
        await world.create(*members("train", 4))
        places = await world.bound()
    assert sorted(places.values()) == ["n1", "n1", "n2", "n2"]
    assert await world.metric("moorage_bind_checks_total", outcome="rejected") == before


async def test_a_pod_that_comes_late_joins_those_that_are_bound(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    least = {"moorage.io/group-min-count": "2"}
    first, second, third = members("elastic", 3, cpu="1", **least)
    async with world.scheduler("ganged"):
        await world.create(first, second)
        await world.bound("elastic-0", "elastic-1")
        await world.create(third)
        await world.bound("elastic-2")


async def test_a_group_that_does_not_fit_holds_no_node(world: World) -> None:
    await world.nodes(node("n2"), node("n1"))
    async with world.scheduler("ganged"):
        await world.create(*members("large", 5))
        await world.condition("large-0", "Unschedulable")
        says = (
            "group default/large does not fit: 4 of 5 placed; 1 needs cpu, which no node has free"
        )

        async def said() -> bool:  # its pods come one after another
            found = await world.explanation("large-0")
            return str(found["reason"]).startswith(f"{says}; nodes for ")

        await world.until(said)
        (shown,) = (await world.groups())["items"]
        assert shown["sentence"] == says
        assert shown["next"] == ["with 1 more node like n1 it starts, or with as much cpu freed"]
        await nothing_held(world)
        await world.create(*members("small", 4))
        places = await world.bound(*(f"small-{i}" for i in range(4)))
        assert not any(place for name, place in places.items() if name.startswith("large"))
        await nothing_held(world)


async def test_pods_are_evicted_for_a_group_only_if_all_of_it_fits_then(world: World) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(node("n1"), node("n2"))
    urgent = {"priorityClassName": "urgent"}

    async def create_urgent(group: str, size: int) -> None:
        pods = members(group, size)
        await world.create(*({**p, "spec": {**p["spec"], **urgent}} for p in pods))

    async with world.scheduler("ganged"):
        await world.create(*(pod(name, "ganged", "6") for name in ("small-1", "small-2")))
        before = await world.bound()
        await create_urgent("large", 5)
        for i in range(5):
            await world.condition(f"large-{i}", "Unschedulable")
        assert {name: n for name, n in (await world.places()).items() if n} == before
        await create_urgent("fits", 3)
        places = await world.bound("fits-0", "fits-1", "fits-2")
    assert not before.keys() & places.keys()


async def test_of_two_groups_with_room_for_one_one_runs_and_the_other_follows(
    world: World,
) -> None:
    await world.nodes(node("n1"), node("n2"))
    async with world.scheduler("ganged"):
        both = [*members("one", 3), *members("two", 3)]
        await world.create(
            *(each for pair in zip(both[:3], both[3:], strict=True) for each in pair)
        )
        await world.placed(3)
        groups = {name.partition("-")[0] for name, place in (await world.places()).items() if place}
        assert len(groups) == 1
        first = groups.pop()
        for i in range(3):
            (await world.request("DELETE", f"{PODS}/{first}-{i}")).check()
        second = "two" if first == "one" else "one"
        await world.bound(*(f"{second}-{i}" for i in range(3)))
        await nothing_held(world)


async def test_the_gate_lets_groups_go_one_after_another_once_they_fit(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    client = await connect(world.plane.kubeconfig("admin"))
    gates = Gates(client, timeout=60)
    options = GatewayOptions(admin=world.services.admin)

    async def look() -> list[str]:
        async with connected(options, client) as gateway:
            return await gates.look(gateway)

    async def says(text: str) -> bool:
        return any(text in line for line in await look())

    gated = {"schedulingGates": [{"name": "moorage.io/group"}]}

    async def create(group: str, profile: str = "ganged") -> None:
        pods = members(group, 3, profile=profile)
        await world.create(*({**p, "spec": {**p["spec"], **gated}} for p in pods))

    try:
        async with world.scheduler("ganged"):
            await create("astray", profile="nobody")  # which keeps no other group back
            await world.until(lambda: says("default/astray stays: there is no profile `nobody`"))
            await create("one")
            await world.until(lambda: says("default/one: its 3 pods may go"))
            await create("two")
            await world.bound("one-0", "one-1", "one-2")
            await world.until(lambda: says("group default/two does not fit"))
            assert not any(n for name, n in (await world.places()).items() if "two" in name)
            for i in range(3):
                (await world.request("DELETE", f"{PODS}/one-{i}")).check()
            await world.until(lambda: says("default/two: its 3 pods may go"))
            await world.bound("two-0", "two-1", "two-2")
    finally:
        await client.close()


async def held(world: World) -> float:
    return await world.metric("moorage_cache_size", type="claims")


async def tried(world: World, member: Object, *nodes: str) -> list[str]:
    """Filter a member as kube-scheduler does; return the nodes that it may use."""
    return list((await world.filter(member, nodes))["NodeNames"] or ())


async def created(world: World, group: str, size: int) -> list[Object]:
    """Create a group that nobody schedules, and wait until the first of its pods fits."""
    pods = await world.create(*members(group, size))

    async def fits() -> bool:
        return bool(await tried(world, pods[0], "n1", "n2"))

    await world.until(fits)
    assert await held(world) == size
    return pods


async def test_a_member_deleted_between_trial_and_bind_ends_what_is_held(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    first, second, _ = await created(world, "shrinks", 3)
    (await world.request("DELETE", f"{PODS}/{second['metadata']['name']}")).check()

    async def let_go() -> bool:  # the watch of members may be behind that of pods
        return not await tried(world, first, "n1", "n2") and await held(world) == 0

    await world.until(let_go)


async def test_a_node_lost_between_trial_and_bind_ends_what_is_held(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    first, *_ = await created(world, "loses", 4)
    (await world.request("DELETE", "/api/v1/nodes/n2")).check()

    async def rejected() -> bool:
        return not await tried(world, first, "n1")

    await world.until(rejected)
    await nothing_held(world)


async def test_members_that_are_not_bound_in_time_let_go_of_their_nodes(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    await created(world, "waits", 4)
    await nothing_held(world)  # after the 5 s of the policy


async def test_a_gateway_killed_between_trial_and_bind_leaves_nothing(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    first, *_ = await created(world, "outlives", 4)
    gateway = world.services.programs["gateway"]
    await gateway.kill()
    await gateway.start()
    await nothing_held(world)
    async with world.scheduler("ganged"):
        places = await world.bound()
    assert sorted(places.values()) == ["n1", "n1", "n2", "n2"]
    assert first["metadata"]["name"] in places
    await nothing_held(world)
