"""Each process has the rights that it needs and no others; the API server's audit log proves it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import yaml

from tests.e2e.rights import Right, given, used
from tests.scenarios.world import EVENTS, World, profiles
from tools.planes.embedded import shipped_config
from tools.planes.objects import node, pod
from tools.planes.real import OUR_NAMESPACE, RealPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

LEASES = "coordination.k8s.io"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def log(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealPlane]:
    """A control plane on which every process has done all that it ever does."""
    # Without lists that come as watches, the gateway has to list as on servers before 1.34.
    directory = tmp_path_factory.mktemp("rights")
    plane = RealPlane(directory, "WatchList=false", profiles=profiles())
    async with World.started(plane) as world:
        # As it is deployed, with its lease, but with the addresses of this machine and a bindVerb.
        config = shipped_config()
        config["extenders"][0] |= world.entry
        config["profiles"] = [{"schedulerName": name} for name in ("steered", "licensed")]
        await world.nodes(node("n1"), node("n2"))
        async with world.configured_scheduler("leader", config):
            await world.create(pod("p"), pod("stuck", reject={"n1": "no", "n2": "no"}))
            await world.bound("p")
            await world.event("stuck")
            await world.explanation("stuck")  # reads the pod's Events
            await world.create(pod("waiting", "licensed"))
            await world.condition("waiting", "Unschedulable")
            # The condition itself wakes its pod once.
            await world.until(lambda: world.was_tried("waiting", times=2))
            (plane.directory / "license").touch()
            await world.bound("waiting")
        await _fail_to_bind(world)
        world.proxy.lose_bindings = True
        (made,) = await world.create(pod("lost", "second"))
        await world.filter(made, ["n1"])
        assert await world.bind(made, "n1") == ""
        await _lose_a_profile(world)
        yield plane


async def test_the_gateway_and_the_binder_use_every_right_they_have(log: RealPlane) -> None:
    for account in ("gateway", "binder"):
        # A single gateway holds no Lease; the component high-availability allows it.
        expected = {right for right in given(account) if right.group != LEASES}
        assert used(log.audit_log, account) == expected, account


async def test_nothing_is_forbidden_to_them(log: RealPlane) -> None:
    # Gang asks for PodGroups. This server does not have them, and refuses first.
    asked = {Right("scheduling.x-k8s.io", "podgroups", verb) for verb in ("list", "watch")}
    assert used(log.audit_log, "gateway", "forbid") <= asked
    assert used(log.audit_log, "binder", "forbid") == set()


async def test_the_second_scheduler_can_hold_its_lease(log: RealPlane) -> None:
    leases = {right for right in used(log.audit_log, "scheduler") if right.group == LEASES}
    assert leases == given("scheduler")
    assert used(log.audit_log, "scheduler", "forbid") == set()


async def test_filter_and_scorer_have_no_rights(log: RealPlane) -> None:
    for account in ("filter", "scorer", "default"):
        assert given(account) == set()
        assert used(log.audit_log, account) == set()


async def test_the_audit_log_tells_rights_apart(log: RealPlane) -> None:
    assert Right("", "pods/binding", "create") in used(log.audit_log, "binder")
    assert Right("", "pods", "watch") in used(log.audit_log, "gateway")


async def _lose_a_profile(world: World) -> None:
    """Take a profile with pods out of the policy: the gateway writes an Event."""
    file = world.plane.directory / "policy.yaml"
    policy = yaml.safe_load(file.read_text())
    policy["profiles"] = [p for p in policy["profiles"] if p["schedulerName"] != "steered"]
    file.write_text(yaml.safe_dump(policy))

    async def told() -> bool:
        events = (await world.read(f"/apis/events.k8s.io/v1/namespaces/{OUR_NAMESPACE}/events"))[
            "items"
        ]
        return any(event["reason"] == "ProfileLost" for event in events)

    await world.until(told)


async def _fail_to_bind(world: World) -> None:
    """Let a bind fail twice for one reason: the second time the first Event is counted up."""
    gates = {"schedulingGates": [{"name": "example.com/wait"}]}
    (made,) = await world.create(pod("gated", "second", spec=gates))
    await world.filter(made, ["n1"])
    for count in (1, 2):
        assert await world.bind(made, "n1") != ""

        async def told(count: int = count) -> bool:
            events = (await world.read(EVENTS))["items"]
            mine = [e for e in events if e["regarding"].get("name") == "gated"]
            return bool(mine) and (count == 1 or bool(mine[0].get("series")))

        await world.until(told)
