"""A shadow says what another profile would do otherwise, and changes nothing."""

import re

import pytest

from tests.cli.support import ran
from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import NAMESPACE, node, pod

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.embedded_alone]


async def settled(world: World, profile: str, cycles: int) -> Object:
    """Wait until so many cycles have been compared, skipped or failed; return the report."""
    report: Object = {}

    async def there() -> bool:
        nonlocal report
        report = await world.shadow(profile)
        counts = (report["compared"], report["failed"], *report["skipped"].values())
        return sum(map(int, counts)) >= cycles

    await world.until(there)
    return report


async def shown(world: World, profile: str) -> list[str]:
    """Return what `moorage shadow` prints."""
    code, output = await ran("shadow", profile, "--admin", world.services.admin)
    assert code == 0, output
    return output.splitlines()


async def one_by_one(world: World, *pods: Object) -> None:
    """Create pods, each once the one before is bound, so that no cycle waits."""
    for each in pods:
        await world.create(each)
        await world.bound(each["metadata"]["name"])


async def test_a_shadow_that_is_no_different_always_agrees(world: World) -> None:
    await world.nodes(node("n1"), node("n2", cpu="4"), node("n3", cpu="2"))
    async with world.scheduler("shadow-alike"):
        await one_by_one(
            world,
            *(
                pod(f"p{i}", "shadow-alike", cpu="300m", score={"n2": 60}, reject={"n3": "no"})
                for i in range(8)
            ),
        )
    report = await settled(world, "shadow-alike", 8)
    assert report["compared"] > 0, report
    assert report["agreement"] == 1
    assert report["disagreements"] == []
    assert report["failed"] == 0


async def test_a_changed_weight_is_found_with_its_plugin(world: World) -> None:
    await world.nodes(node("empty"), node("liked", cpu="1"))
    async with world.scheduler("shadow-weighted"):
        # The live profile prefers "liked" by its own score, the shadow the node with more room.
        await one_by_one(
            world, *(pod(f"p{i}", "shadow-weighted", "200m", score={"liked": 80}) for i in range(3))
        )
    report = await settled(world, "shadow-weighted", 3)
    assert report["compared"] > 0, report
    assert report["agreement"] == 0
    assert report["disagreedWinner"] == report["compared"]
    assert report["disagreedFilter"] == 0
    newest = report["disagreements"][0]
    assert newest["namespace"] == NAMESPACE
    assert newest["pod"] in {"p0", "p1", "p2"}
    assert (newest["live"], newest["shadow"]) == ("liked", "empty")
    (reason,) = report["reasons"]
    assert reason["kind"] == "winner"
    assert reason["plugin"] == "NodeResourcesLeastAllocated"
    assert reason["reason"] == "has weight 9 instead of 1"
    lines = await shown(world, "shadow-weighted")
    cycles = "1 cycle" if report["compared"] == 1 else f"{report['compared']} cycles"
    assert lines[0] == f"shadow-weighted: the shadow agrees in 0 % of {cycles}"
    assert "NodeResourcesLeastAllocated  has weight 9 instead of 1" in "\n".join(lines)
    assert any(f"{NAMESPACE}/{newest['pod']}  liked  empty  " in line for line in lines)


async def test_a_changed_argument_is_found_with_the_reason_of_the_filter(world: World) -> None:
    with_licence = node("n1")
    for amounts in with_licence["status"].values():
        amounts["example.com/licence"] = "1"
    await world.nodes(with_licence, node("n2"), node("n3"))
    licensed = pod("licensed", "shadow-lenient")
    licensed["metadata"]["uid"] = "uid"
    licensed["spec"]["containers"][0]["resources"]["requests"]["example.com/licence"] = "1"
    # Called as by a kube-scheduler that does not filter by this resource itself.
    answer = await world.filter(licensed, ["n1", "n2", "n3"])
    assert set(answer["FailedAndUnresolvableNodes"]) == {"n2", "n3"}
    report = await settled(world, "shadow-lenient", 1)
    (found,) = [each for each in report["reasons"] if each["kind"] == "filter"]
    assert found["plugin"] == "NodeResourcesFit"
    assert found["reason"] == "only the live profile rejects: Insufficient example.com/licence"
    text = report["disagreements"][0]["reasons"][0]
    assert re.match(r"only the live profile rejects n[23] and 1 more: NodeResourcesFit: ", text)
    assert report["disagreements"][0]["feasible"] == 1
    assert report["disagreements"][0]["shadowFeasible"] == 3


async def test_a_shadow_that_fails_does_not_touch_the_live_profile(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    async with world.scheduler("shadow-failing"):
        await one_by_one(
            world,
            *(pod(f"p{i}", "shadow-failing", fail="not today") for i in range(2)),
            *(pod(f"slow{i}", "shadow-failing", seconds="30") for i in range(5)),
        )
    report = await settled(world, "shadow-failing", 7)
    assert report["failed"] > 0, report
    assert report["compared"] == 0
    attempts = [await world.decision(name) for name in await world.places()]
    assert not any("error" in attempt for attempt in attempts)
    plugins = {each["plugin"] for a in attempts for each in a["filter"]["plugins"]}
    assert plugins == {"NodeResourcesFit"}
    assert (
        await world.metric("moorage_plugin_failures_total", plugin="Steered", phase="filter") == 0
    )


async def test_a_shadow_without_a_share_of_the_time_never_runs(world: World) -> None:
    await world.nodes(node("n1"))
    asked = pod("any", "shadow-paused")
    asked["metadata"]["uid"] = "uid"
    await world.filter(asked, ["n1"])
    report = await settled(world, "shadow-paused", 1)
    assert report["compared"] == 0
    assert report["skipped"]["share"] == 1
    assert report["agreement"] is None
