"""What users read when a pod cannot be scheduled, and what brings it back."""

import pytest
import yaml

from tests.scenarios.world import World
from tools.planes.objects import NO_CLAIMS, node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKED = "moorage.io/RetryRequested"
NAMES = ("n1", "n2", "n3", "n4")


async def test_reasons_are_grouped_and_counted(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    reasons = {"n1": "no free slice", "n2": "node is too hot", "n3": "no free slice", "n4": "full"}
    async with world.scheduler():
        await world.create(pod("p", reject=reasons))
        note = await world.event("p")
        message = await world.condition("p", "Unschedulable")

    assert note == message
    assert note.replace(NO_CLAIMS, "") == (
        "0/4 nodes are available: 1 full, 1 node is too hot, 2 no free slice. "
        "preemption: 0/4 nodes are available: 4 Preemption is not helpful for "
        "scheduling."
    )


async def test_reasons_of_kube_scheduler_and_of_moorage_add_up(world: World) -> None:
    await world.nodes(node("n1", cpu="1"), node("n2"), node("n3"))
    async with world.scheduler():
        await world.create(pod("p", cpu="2", reject={"n2": "no free slice", "n3": "no free slice"}))
        message = await world.condition("p", "Unschedulable")

    assert message.startswith("0/3 nodes are available: 1 Insufficient cpu, 2 no free slice. ")


async def test_a_rejected_pod_is_tried_again_when_a_node_comes(world: World) -> None:
    await world.nodes(node("n1"))
    async with world.scheduler():
        await world.create(pod("p", reject={"n1": "no free slice"}))
        await world.event("p")
        await world.nodes(node("n2"))
        assert await world.bound() == {"p": "n2"}


async def test_a_plugin_brings_back_the_pods_that_it_rejected(world: World) -> None:
    file = world.plane.directory / "license"
    file.unlink(missing_ok=True)
    await world.nodes(node("n1"))
    # No kube-scheduler tries it: its condition would wake the first pod at any time.
    (other,) = await world.create(pod("other", reject={"n1": "no free slice"}))
    assert not (await world.filter(other, ["n1"]))["NodeNames"]
    async with world.scheduler("licensed"):
        await world.create(pod("p", "licensed"))
        await world.condition("p", "Unschedulable")
        # The condition itself wakes its pod once.
        await world.until(lambda: world.was_tried("p", times=2))
        file.touch()
        assert (await world.bound("p"))["p"] == "n1"
        pods = await world.pods()

    (asked,) = (c for c in pods["p"]["status"]["conditions"] if c["type"] == ASKED)
    assert (asked["reason"], asked["message"]) == ("License", "there is a license")
    assert ASKED not in str(pods["other"])


async def test_a_rejected_pod_is_tried_again_when_the_policy_changes(world: World) -> None:
    file = world.plane.directory / "policy.yaml"
    before = file.read_text()
    policy = yaml.safe_load(before)
    (second,) = (each for each in policy["profiles"] if each["schedulerName"] == "second")
    del second["plugins"]
    await world.nodes(node("n1"))
    async with world.scheduler("second"):
        await world.create(pod("p", "second", reject={"n1": "no free slice"}))
        await world.condition("p", "Unschedulable")
        # The condition itself wakes its pod once.
        await world.until(lambda: world.was_tried("p", times=2))
        try:
            file.write_text(yaml.safe_dump(policy))
            assert await world.bound("p") == {"p": "n1"}
        finally:
            file.write_text(before)
        pods = await world.pods()

    (asked,) = (c for c in pods["p"]["status"]["conditions"] if c["type"] == ASKED)
    assert asked["message"] == "the policy has changed since it was rejected"


async def test_replicas_that_fit_nowhere_are_rejected_from_the_cache_until_a_node_comes(
    world: World,
) -> None:
    await world.nodes(*map(node, NAMES))
    names = [f"web-{number}" for number in range(20)]
    metric, labels = "moorage_cached_phases_total", {"phase": "filter", "extent": "whole"}
    before = await world.metric(metric, **labels)
    async with world.scheduler("moorage"):
        pods = [pod(name, "moorage", labels={"nodeGroup": "gpu"}) for name in names]
        await world.create(*pods)
        messages = {await world.condition(name, "Unschedulable") for name in names}
        assert await world.metric(metric, **labels) - before > len(names) / 2
        attempts = [await world.decision(name) for name in names]
        await world.nodes(node("gpu", labels={"nodeGroup": "gpu"}))
        assert set((await world.bound()).values()) == {"gpu"}

    (message,) = messages
    assert message.startswith("0/4 nodes are available: 4 node does not have required label. ")
    filters = [attempt["filter"] for attempt in attempts if "filter" in attempt]  # one may wait
    sources = {each.get("cachedFrom", "") for each in filters} - {""}
    assert sources <= {f"default/{name}" for name in names}
    assert sources


async def test_pods_go_anywhere_while_an_ignorable_gateway_is_down(world: World) -> None:
    await world.nodes(node("n1"))
    await world.services.programs["gateway"].kill()
    async with world.scheduler(ignorable=True):
        await world.create(pod("p", reject={"n1": "never"}))
        assert await world.bound("p") == {"p": "n1"}
        # kube-scheduler's own binder did it.
        assert not [name for name, _ in world.proxy.binds if name == "p"]


async def test_a_slow_plugin_is_cut_off_before_kube_scheduler_gives_up(world: World) -> None:
    await world.nodes(node("n1"))
    async with world.scheduler(httpTimeout="5s"):
        await world.create(pod("slow", seconds="30"))
        message = await world.condition("slow", "SchedulerError")

    assert message.startswith("filter service: ")
    assert "Client.Timeout" not in message
