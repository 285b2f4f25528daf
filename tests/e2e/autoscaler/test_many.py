"""`moorage capacity` with a real Karpenter in every kind of trouble; `make nightly` runs it.

Nodes are counted, not seconds: a condition that proves that somebody has looked comes first.
"""

import asyncio
import logging
import os
import random
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.e2e.autoscaler.karpenter import EACH, HOT, Cluster, cool
from tests.scenarios.world import PODS
from tools.planes.embedded import Object

LOGGER = logging.getLogger(__name__)
LONG = 200.0
MINUTES = float(os.environ.get("MINUTES", "1"))
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900 + 60 * MINUTES)]

QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def named(count: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def needed(pods: int) -> int:
    """Return how many nodes take so many pods."""
    return -(-pods // EACH)


async def told(cluster: Cluster, name: str) -> str:
    """Return what `explain` says of the request for a pod."""
    return str((await cluster.world.explanation(name)).get("capacity", ""))


async def bound_on(cluster: Cluster, *names: str) -> set[str]:
    """Wait until pods are bound; return their nodes."""
    places = await cluster.world.bound(*names, patience=LONG)
    return {places[name] for name in names}


async def test_pods_one_by_one_get_another_node_when_the_last_is_full(
    cluster: Cluster,
) -> None:
    nodes = set[str]()
    async with cluster.controller():
        for name in named(20):
            await cluster.world.create(cool(name))
            nodes |= await bound_on(cluster, name)
        await cluster.world.until(cluster.is_clean, LONG)
    assert nodes <= cluster.added
    assert needed(20) <= len(cluster.added) <= needed(20) + 1


async def test_pods_at_once_get_as_many_nodes_as_they_need(
    cluster: Cluster,
) -> None:
    async with cluster.controller():
        await cluster.world.create(*map(cool, named(20)))
        assert await bound_on(cluster, *named(20)) <= cluster.added
        await cluster.world.until(cluster.is_clean, LONG)
    assert needed(20) <= len(cluster.added) <= needed(20) + 1


async def test_a_rule_that_no_new_node_cures_costs_two_and_is_told(cluster: Cluster) -> None:
    world, cluster.annotations = cluster.world, {"heated/hot": "yes"}
    async with cluster.controller("--pause=1"):
        await world.create(cool("a"))
        said = await world.event("a", reason="NewNodesRejected")
        assert said == "two new nodes were rejected too: node is hot"
        assert await told(cluster, "a") == said
        assert len(cluster.added) == 2
        # A later pod shows that the controller goes on looking, and asks for none for the first.
        cluster.annotations = {}
        await world.create(cool("b"))
        assert await bound_on(cluster, "b") < cluster.added
        assert len(cluster.added) == 3
        await cluster.delete("a")
        await world.until(cluster.is_clean, LONG)


async def test_the_limits_of_a_node_pool_are_told(cluster: Cluster) -> None:
    world = cluster.world
    await cluster.pool(cpu=8)
    async with cluster.controller():
        await world.create(*map(cool, named(3 * EACH)))
        await world.placed(2 * EACH)
        left = [name for name, place in (await world.places()).items() if not place]
        (waiting, *_) = (name for name in left if name.startswith("p"))

        async def is_told() -> bool:
            return "limit" in await told(cluster, waiting)

        await world.until(is_told, LONG)
        assert len(cluster.added) == 2
        await cluster.delete(*(name for name in left if name.startswith("p")))
        await world.until(cluster.is_clean, LONG)


async def has_placeholder(cluster: Cluster) -> bool:
    return bool(await cluster.placeholders())


async def has_claim(cluster: Cluster) -> bool:
    return bool(await cluster.claims())


async def has_node(cluster: Cluster) -> bool:
    return bool(cluster.added)


async def is_followed(cluster: Cluster) -> bool:
    found = [
        each["status"].get("conditions", ()) for each in (await cluster.placeholders()).values()
    ]
    return any(each.get("reason") == "NodeAdded" for conditions in found for each in conditions)


async def is_bound(cluster: Cluster) -> bool:
    return bool((await cluster.world.places())["a"])


@pytest.mark.parametrize("step", [has_placeholder, has_claim, has_node, is_followed, is_bound])
async def test_a_controller_that_is_killed_leaves_nothing_behind(
    cluster: Cluster, step: Callable[[Cluster], Awaitable[bool]]
) -> None:
    world = cluster.world
    async with cluster.controller() as first:
        await world.create(cool("a"))
        await world.until(lambda: step(cluster))
        await first.kill()
    async with cluster.controller(name="second"):
        assert await bound_on(cluster, "a") <= cluster.added
        await world.until(cluster.is_clean, LONG)
    assert len(cluster.added) == 1


async def test_the_placeholder_of_a_pod_that_is_deleted_goes_without_a_controller(
    cluster: Cluster,
) -> None:
    async with cluster.controller() as first:
        await cluster.world.create(cool("a"))
        await cluster.world.until(lambda: has_placeholder(cluster))
        await first.kill()
    await cluster.delete("a")
    await cluster.world.until(cluster.has_no_placeholder)
    assert len(cluster.added) <= 1


async def test_of_two_controllers_one_asks_and_the_other_takes_over(cluster: Cluster) -> None:
    world = cluster.world
    async with cluster.controller() as first, cluster.controller(name="second"):
        await world.create(*map(cool, named(EACH)))
        await bound_on(cluster, *named(EACH))
        assert len(cluster.added) == 1
        await first.kill()
        await world.create(*map(cool, named(EACH, "q")))
        await bound_on(cluster, *named(EACH, "q"))
        await world.until(cluster.is_clean, LONG)
    assert len(cluster.added) == 2


async def test_a_group_gets_all_that_it_lacks_at_once(cluster: Cluster) -> None:
    size = 2 * EACH
    labels = {"moorage.io/group": "train", "moorage.io/group-size": str(size)}
    members = [
        cool(name, labels=labels, spec={"schedulerName": "heated-gangs"}) for name in named(size)
    ]
    async with cluster.controller():
        await cluster.world.create(*members)
        assert await bound_on(cluster, *named(size)) <= cluster.added
        await cluster.world.until(cluster.is_clean, LONG)
    assert 2 <= len(cluster.added) <= 3


async def test_a_pod_that_is_deleted_meanwhile_is_not_asked_for_any_more(cluster: Cluster) -> None:
    await cluster.pool(consolidate="0s")
    async with cluster.controller():
        await cluster.world.create(cool("a"))
        await cluster.world.until(lambda: has_placeholder(cluster))
        await cluster.delete("a")
        await cluster.world.until(cluster.is_clean, LONG)

        async def all_gone() -> bool:
            return set(await cluster.nodes()) == set(HOT) and not await cluster.claims()

        await cluster.world.until(all_gone, LONG)
    assert len(cluster.added) <= 1


async def test_pods_that_refuse_each_other_get_a_node_each(cluster: Cluster) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [cool(name, labels={"app": "a"}, spec={"affinity": apart}) for name in named(3)]
    async with cluster.controller():
        await cluster.world.create(*pods)
        assert len(await bound_on(cluster, *named(3))) == 3
        await cluster.world.until(cluster.is_clean, LONG)
    assert 3 <= len(cluster.added) <= 4


async def test_a_node_that_only_the_rule_needs_is_kept_and_goes_with_its_pods(
    cluster: Cluster,
) -> None:
    world = cluster.world
    await cluster.pool(consolidate="0s")
    async with cluster.controller():
        await world.create(*map(cool, named(2 * EACH)))
        nodes = await bound_on(cluster, *named(2 * EACH))
        await world.until(lambda: all_looked_at(cluster, nodes), LONG)
        assert await cluster.world.bound(*named(2 * EACH))
        assert cluster.added == nodes
        await cluster.delete(*named(2 * EACH))

        async def all_gone() -> bool:
            return set(await cluster.nodes()) == set(HOT)

        await world.until(all_gone, LONG)
        await world.until(cluster.is_clean, LONG)
    assert cluster.added == nodes


async def all_looked_at(cluster: Cluster, nodes: set[str]) -> bool:
    """Whether Karpenter has said of all nodes why it does not take them away."""
    events = (await cluster.world.read("/api/v1/namespaces/default/events"))["items"]
    reasons = ("DisruptionBlocked", "Unconsolidatable")
    return nodes <= {e["involvedObject"]["name"] for e in events if e["reason"] in reasons}


async def test_a_quota_that_allows_no_placeholder_is_told(cluster: Cluster) -> None:
    world = cluster.world
    hard, used = {"pods": "1"}, {"pods": "0"}
    quota: Object = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": hard},
    }
    (await world.request("POST", QUOTAS, quota)).check()
    try:
        # What the controller of quotas would write.
        status = {"status": {"hard": hard, "used": used}}
        (await world.request("PATCH", f"{QUOTAS}/few/status", status)).check()
        async with cluster.controller("--pause=1"):
            await world.until(lambda: created(cluster, "a"))
            assert "exceeded quota: few" in await world.event("a", reason="NodeNotAsked")
            assert await cluster.claims() == []
            (await world.request("DELETE", f"{QUOTAS}/few")).check()
            assert await bound_on(cluster, "a") == cluster.added
            await world.until(cluster.is_clean, LONG)
    finally:
        await world.request("DELETE", f"{QUOTAS}/few")


async def created(cluster: Cluster, name: str) -> bool:
    """Create a pod once its quota is known to the API server."""
    return (await cluster.world.request("POST", PODS, cool(name))).ok


async def test_five_hundred_pods_of_one_tenant_leave_room_for_another(cluster: Cluster) -> None:
    world, most = cluster.world, 20
    for name in ("crowd", "quiet"):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        (await world.request("POST", "/api/v1/namespaces", body)).check()
    pods = [in_namespace("crowd", cool(name, cpu="50m")) for name in named(500)]
    try:
        async with cluster.controller(f"--most-per-namespace={most}", "--most=30"):
            await asyncio.gather(*(create(cluster, each) for each in pods))
            await create(cluster, in_namespace("quiet", cool("a")))
            asked = 0

            async def bound() -> bool:
                nonlocal asked
                found = (await cluster.placeholders()).values()
                own = [each for each in found if each["metadata"]["namespace"] == "crowd"]
                asked = max(asked, len(own))
                items = (await world.read("/api/v1/namespaces/quiet/pods"))["items"]
                return any(e["spec"].get("nodeName") for e in items if e["metadata"]["name"] == "a")

            await world.until(bound, LONG)
            assert asked <= most

            async def all_bound() -> bool:
                items = (await world.read("/api/v1/namespaces/crowd/pods"))["items"]
                return sum(bool(each["spec"].get("nodeName")) for each in items) == len(pods)

            await world.until(all_bound, 2 * LONG)
            await world.until(cluster.is_clean, LONG)
    finally:
        for name in ("crowd", "quiet"):
            await world.request("DELETE", f"/api/v1/namespaces/{name}/pods")
    # 500 times 50 m and one processor, on nodes that have 3.92 of them to give.
    assert 7 <= len(cluster.added) <= 9


def in_namespace(name: str, pod: Object) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "namespace": name}}


async def create(cluster: Cluster, pod: Object) -> None:
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
    (await cluster.world.request("POST", path, pod)).check()


async def test_nothing_is_left_after_minutes_of_churn(cluster: Cluster) -> None:
    world, rng, wave, most = cluster.world, random.Random(38), 0, 0
    await cluster.pool(consolidate="10s")
    end = time.monotonic() + MINUTES * 60

    async def only_hot() -> bool:
        return set(await cluster.nodes()) == set(HOT)

    async with cluster.controller():
        while time.monotonic() < end:
            count, before = rng.randint(1, 20), len(cluster.added)
            names = named(count, f"w{wave}-")
            await world.create(*map(cool, names))
            if rng.random() < 0.8:  # else they go while nodes come for them
                await bound_on(cluster, *names)
            most = max(most, len(cluster.added) - before - needed(count))
            await cluster.delete(*names)
            if rng.random() < 0.5:
                await world.until(only_hot, LONG)
            LOGGER.info(
                "wave %d: %d pods, needed %d, added %d, nodes now %d, placeholders %d",
                *(wave, count, needed(count), len(cluster.added) - before),
                *(len(await cluster.nodes()) - len(HOT), len(await cluster.placeholders())),
            )
            wave += 1
        await world.until(only_hot, LONG)
        await world.until(cluster.is_clean, LONG)
    assert await cluster.claims() == []
    assert most <= 1
