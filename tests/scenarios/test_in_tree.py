"""Without an extender, the stand-in decides as the real kube-scheduler does."""

import re

import pytest

from tests.scenarios import many_kinds
from tests.scenarios.world import World
from tools.planes.embedded import Object

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIGURATION: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [{"schedulerName": many_kinds.SCHEDULER}],
}


def reasons(message: str) -> frozenset[str]:
    """Return what rejected nodes, without how many."""
    rejections = message.partition(" nodes are available: ")[2].partition(". ")[0]
    return frozenset(re.sub(r"^\d+ ", "", part) for part in rejections.split(", "))


def condition(pod: Object) -> Object:
    conditions = pod.get("status", {}).get("conditions") or ()
    found: Object = next((c for c in conditions if c["type"] == "PodScheduled"), {})
    return found


async def test_400_pods_of_many_kinds_are_placed_or_stay_pending_for_the_same_reasons(
    world: World,
) -> None:
    groups = many_kinds.groups()
    created = [pod for group in groups for pod in group.pods]
    assert len(created) == 400
    await world.nodes(*many_kinds.nodes())

    async def settled() -> bool:
        pods = (await world.pods()).values()
        return all(p["spec"].get("nodeName") or condition(p).get("message") for p in pods)

    async with world.configured_scheduler("kube-scheduler", CONFIGURATION):
        for pod in created:  # not side by side: the first come are the first placed
            await world.create(pod)
        await world.until(settled)
        pods = await world.pods()

    for group in groups:
        names = [pod["metadata"]["name"] for pod in group.pods]
        places = {name: pods[name]["spec"].get("nodeName") for name in names}
        assert [name for name in names if places[name]] == names[: group.fits]
        if group.places:
            assert set(places.values()) <= {*group.places, None}
        pending = names[group.fits :]
        given = {name: reasons(condition(pods[name])["message"]) for name in pending}
        assert given == dict.fromkeys(pending, group.reasons)
