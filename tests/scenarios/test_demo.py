"""The demonstration, as a reader of the README sees it."""

import pytest
import yaml

from tests.scenarios.world import World
from tools.planes.embedded import ROOT, Object
from tools.planes.objects import NO_CLAIMS

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEMO = ROOT / "deploy" / "demo"


async def test_the_demonstration(world: World) -> None:
    nodes, pods = _documents("nodes"), _documents("pods")
    await world.nodes(*nodes)
    await world.create(*pods)
    async with world.scheduler("moorage"):
        names = [pod["metadata"]["name"] for pod in pods if "misplaced" not in str(pod["metadata"])]
        places = await world.bound(*names)
        message = await world.condition("misplaced", "Unschedulable")

    assert places == {
        "hello-1-a": "demo-m02",
        "hello-1-b": "demo-m02",
        "hello-2-a": "demo-m03",
        "hello-2-b": "demo-m03",
        "notebook": "demo-m03",
        "misplaced": "",
    }
    assert message.replace(NO_CLAIMS, "") == (
        "0/3 nodes are available: 1 node does not have required label, 2 nodeGroup of pod and "
        "node don't match. preemption: 0/3 nodes are available: 3 "
        "Preemption is not helpful for scheduling."
    )
    assert (await world.decision("notebook"))["bind"]["node"] == "demo-m03"


def _documents(name: str) -> list[Object]:
    return list(yaml.safe_load_all((DEMO / f"{name}.yaml").read_text()))
