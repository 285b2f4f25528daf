"""Nodes for rules: `moorage capacity` with an autoscaler that knows no rule."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from cli.capacity import control
from cli.capacity.control import RequestLimits
from cli.capacity.running import run
from cli.shared.gateway.options import GatewayOptions
from gateway.decisions.capacity import PLACEHOLDER
from moorage_host.kube import connect
from tests.scenarios.karpenter import FakeKarpenter, node_pool
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")


def hot(*names: str) -> list[Object]:
    """Return nodes that the rule rejects."""
    return [node(name, annotations={"heated/hot": "true"}) for name in names]


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge new nodes at once."""
    for name in ("SETTLED_SECONDS", "LABELS_SECONDS", "KEPT_SECONDS", "NOTES_SECONDS"):
        monkeypatch.setattr(control, name, 0.5)


@asynccontextmanager
async def capacity(
    world: World,
    autoscaler: str = "karpenter",
    *,
    most: int = 100,
    per_namespace: int = 100,
    timeout: float = 60.0,
) -> AsyncIterator[None]:
    """Run the controller for as long as the block lasts."""
    options = GatewayOptions(admin=world.services.admin, kubeconfig=world.plane.kubeconfig("admin"))
    limits = RequestLimits(most=most, most_per_namespace=per_namespace, pause=0.5, timeout=timeout)
    task = asyncio.create_task(run(options, autoscaler=autoscaler, limits=limits, interval=0.3))
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def karpenter(world: World, *pools: Object) -> AsyncIterator[FakeKarpenter]:
    client = await connect(world.plane.kubeconfig("admin"))
    fake = FakeKarpenter(client)
    try:
        async with fake.running(*(pools or (node_pool(),))):
            yield fake
    finally:
        await client.close()


async def placeholders(world: World) -> list[Object]:
    pods = (await world.pods()).values()
    return [each for each in pods if PLACEHOLDER in each["metadata"].get("labels", {})]


async def nothing_left(world: World) -> None:
    """Wait until there is no placeholder and no label of nodes that exist."""

    async def nothing() -> bool:
        nodes = (await world.read("/api/v1/nodes"))["items"]
        labels = [each["metadata"].get("labels", {}) for each in nodes]
        marked = any("moorage.io/existing" in each for each in labels)
        return not marked and not await placeholders(world)

    await world.until(nothing)


async def test_a_node_comes_for_a_pod_that_only_a_rule_keeps_waiting(world: World) -> None:
    await world.nodes(*hot("n1", "n2", "n3"))
    async with world.scheduler("heated"), karpenter(world) as added:
        await world.create(pod("p", "heated", "1"))
        await world.condition("p", "Unschedulable")
        assert not added.added
        async with capacity(world):
            places = await world.bound("p")
            assert places["p"] == added.added[0]
            await nothing_left(world)
            kept = await world.read(f"/api/v1/nodes/{places['p']}")
            assert kept["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
    assert len(added.added) == 1


async def test_nothing_is_asked_for_where_no_new_node_would_help(world: World) -> None:
    await world.nodes(*hot("n1"))
    async with world.scheduler("heated"), karpenter(world) as added, capacity(world):
        never = pod("p", "heated")
        never["metadata"]["annotations"] = {"heated/never": "true"}
        await world.create(never)
        note = await world.event("p", reason="NoNodeHelps")
        assert note == "no new node would help: the pod is not wanted (Heated)"
        assert (await world.explanation("p"))["capacity"] == note
    assert not added.added
    assert (await world.read(PODS))["items"]
