"""Deployments and Jobs of the sandbox, whose pods the plugins place.

The real control plane of these scenarios has no controllers.
"""

from typing import Any

import pytest

from tests.scenarios.world import PATHS, World
from tools.planes.embedded import Object
from tools.planes.objects import NAMESPACE, node, pod

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.parametrize("shared_world", ["embedded"], indirect=True),
]


def workload(kind: str, name: str, like: Object, **spec: Any) -> Object:
    """Build a workload whose pods are like a pod."""
    metadata = {"labels": {"app": name}, "annotations": like["metadata"]["annotations"]}
    template = {"metadata": metadata, "spec": like["spec"]}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"template": template, **selector, **spec},
    }


async def test_pods_of_a_deployment_are_placed_by_the_plugins(world: World) -> None:
    await world.nodes(node("n1"), node("n2"), node("n3"))
    like = pod("any", score={"n2": 100}, reject={"n3": "full"})
    async with world.scheduler():
        await world.create(workload("Deployment", "web", like, replicas=2))
        await world.placed(2)
        scale = f"{PATHS['Deployment']}/web/scale"
        (await world.request("PATCH", scale, {"spec": {"replicas": 4}})).check()
        await world.placed(4)

    places = await world.places()
    assert len(places) == 4
    assert set(places.values()) == {"n2"}
    (name, *_) = places
    decision = await world.decision(name)
    assert decision["filter"]["feasible"] == 2


async def test_pods_of_a_job_wait_for_room_and_name_the_plugin(world: World) -> None:
    await world.nodes(node("n1"))
    like = pod("any", reject={"n1": "no free slice"}, spec={"restartPolicy": "Never"})
    async with world.scheduler():
        await world.create(workload("Job", "train", like, parallelism=2, completions=2))

        async def made() -> bool:
            return len(await world.pods()) == 2

        await world.until(made)
        for name in await world.pods():
            message = await world.condition(name, "Unschedulable")
            assert message.startswith("0/1 nodes are available: 1 no free slice. ")
