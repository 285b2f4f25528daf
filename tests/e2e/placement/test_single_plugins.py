"""Where pods land on a real kube-scheduler if a single plugin of Moorage decides.

What Moorage's default plugins and those that measure nodes do is seen elsewhere. Each plugin has a
profile of its own here, and kube-scheduler runs without any filter or score plugin of its own.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

IDLE, USED = "idle", "used"
IMAGE = "example.com/large:1"
DISK = {"name": "disk", "gcePersistentDisk": {"pdName": "d1"}}
PACKING = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
PREFERS = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {
            "weight": 1,
            "preference": {
                "matchExpressions": [{"key": "name", "operator": "In", "values": [USED]}]
            },
        }
    ]
}
LARGE = {"cpu": "2", "memory": "8Gi"}
RICH_IN_MEMORY = {"cpu": "800m", "memory": "16Gi"}

# By profile: the plugin, its arguments, what the pod is like, and where it should go.
CASES: Mapping[str, tuple[str, Object, Object, str]] = {
    "least": ("NodeResourcesLeastAllocated", {}, {}, IDLE),
    "most": ("NodeResourcesMostAllocated", {}, {}, USED),
    "ratio": ("RequestedToCapacityRatio", PACKING, {}, USED),
    "balanced": ("NodeResourcesBalancedAllocation", {}, {"requests": RICH_IN_MEMORY}, USED),
    "spread": ("PigeonHoling", {"policyObjective": "LOAD_BALANCE"}, {}, IDLE),
    "pack": ("PigeonHoling", {"policyObjective": "CONSOLIDATE"}, {}, USED),
    "adapt": ("PigeonHoling", {"policyObjective": "A_BINPACK"}, {}, IDLE),
    "taints": ("TaintToleration", {}, {}, IDLE),
    "affinity": ("NodeAffinity", {}, {"affinity": {"nodeAffinity": PREFERS}}, USED),
    "locality": ("ImageLocality", {}, {"image": IMAGE}, USED),
    "images": ("ImageScore", {}, {"image": IMAGE}, USED),
    "disks": ("VolumeRestrictions", {}, {"volumes": [DISK]}, IDLE),
}


def policy() -> Object:
    """Return a policy with a profile for each case."""
    profiles = [
        {
            "schedulerName": profile,
            "plugins": {
                "multiPoint": {"disabled": [{"name": "*"}]},
                "filter" if profile == "disks" else "score": {"enabled": [{"name": plugin}]},
            },
            "pluginConfig": [{"name": plugin, "args": args}],
        }
        for profile, (plugin, args, _, _) in CASES.items()
    ]
    head = {"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration"}
    return {**head, "profiles": profiles}


@pytest_asyncio.fixture(loop_scope="session")
async def world(bare: World) -> AsyncIterator[World]:
    """A world with an idle node and one that is used."""
    async with bare.with_moorage(policy()) as world:
        try:
            await create_nodes(world)
            yield world
        finally:
            await world.clear()


async def create_nodes(world: World) -> None:
    taint = {"key": "example.com/old", "effect": "PreferNoSchedule"}
    used = node(USED, labels={"name": USED}) | {"spec": {"taints": [taint]}}
    used["status"]["images"] = [{"names": [IMAGE], "sizeBytes": 900 * 1024 * 1024}]
    await world.nodes(node(IDLE), used)
    requests = {"cpu": "4", "memory": "4Gi"}
    await world.create(of("there", "nobody", requests=requests, nodeName=USED, volumes=[DISK]))


def of(
    name: str,
    profile: str,
    *,
    requests: Mapping[str, str] = LARGE,
    image: str = "app:1",
    **spec: Any,
) -> Object:
    """Build a pod."""
    container = {"name": "main", "image": image, "resources": {"requests": requests}}
    return pod(name, profile, spec={**spec, "containers": [container]})


async def remove(world: World, name: str) -> None:
    """Delete a pod, and wait until the next one will find the nodes as this one did."""
    (await world.request("DELETE", f"{PODS}/{name}")).check()

    async def gone() -> bool:
        return await world.metric("moorage_cache_size", type="pods") == 1

    await world.until(gone)


async def test_each_plugin_alone_decides_where_its_pod_goes(world: World) -> None:
    needed = [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]
    plugins = {"multiPoint": {"enabled": needed, "disabled": [{"name": "*"}]}}
    profiles = [{"schedulerName": profile, "plugins": plugins} for profile in CASES]
    places = {}
    async with world.scheduler(top={"profiles": profiles}):
        for profile, (_, _, made, _) in CASES.items():
            await world.create(of(profile, profile, **made))
            places[profile] = (await world.bound(profile))[profile]
            await remove(world, profile)
    assert places == {profile: place for profile, (_, _, _, place) in CASES.items()}
