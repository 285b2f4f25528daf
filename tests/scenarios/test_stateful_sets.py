"""Pods of StatefulSets, whose zones follow from their ordinals and volumes."""

import pytest

from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import NAMESPACE, node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

ZONE = "topology.kubernetes.io/zone"
ZONES = "abc"
BY_HAND = {"sandbox.moorage.io/not-managed": ""}
"""On the sandbox the test makes the pods, as it has to on the real control plane."""


def stateful_set(name: str) -> Object:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }
    request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": BY_HAND},
        "spec": {
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": request}],
        },
    }


def volume(claim: str, zone: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{claim}", "labels": {ZONE: zone}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "claimRef": {"namespace": NAMESPACE, "name": claim},
        },
    }


def member(owner: Object, number: int, cpu: str = "10m") -> Object:
    """Build a pod as the controller would, if there were one."""
    name = f"{owner['metadata']['name']}-{number}"
    made = pod(name, "zoned", cpu, labels={"statefulset.kubernetes.io/pod-name": name})
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    return made


async def zones_of(world: World, *names: str) -> str:
    places = await world.bound(*names)
    return "".join(places[name][-1] for name in names)


async def known(world: World, kind: str, count: int) -> None:
    async def done() -> bool:
        return await world.metric("moorage_cache_size", type=kind) == count

    await world.until(done)


async def test_pods_of_a_stateful_set_take_the_zones_in_turn(world: World) -> None:
    await world.nodes(*(node(f"n{zone}", labels={ZONE: zone}) for zone in ZONES))
    (owner,) = await world.create(stateful_set("db"))
    async with world.scheduler("zoned"):
        await world.create(*(member(owner, number) for number in range(6)))
        assert await zones_of(world, *(f"db-{number}" for number in range(6))) == "abcabc"


async def test_a_pod_comes_back_to_the_zone_of_its_volume(world: World) -> None:
    await world.nodes(*(node(f"n{zone}", labels={ZONE: zone}) for zone in ZONES))
    (owner,) = await world.create(stateful_set("db"))
    async with world.scheduler("zoned"):
        await world.create(member(owner, 0))
        assert await zones_of(world, "db-0") == "a"

        await world.create(volume("data-db-1", "c"), volume("data-db-2", "b"))
        await known(world, "persistentvolumes", 2)
        await world.create(member(owner, 1), member(owner, 2))
        assert await zones_of(world, "db-1", "db-2") == "cb"


async def test_a_pod_rather_waits_than_leave_its_zone(world: World) -> None:
    small, large = node("na", cpu="1", labels={ZONE: "a"}), node("nb", labels={ZONE: "b"})
    await world.nodes(small, large)
    (owner,) = await world.create(stateful_set("db"))
    async with world.scheduler("zoned"):
        await world.create(member(owner, 0, cpu="2"))
        note = await world.event("db-0", "StatefulSet's pod")
    assert note.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) are not in the")
