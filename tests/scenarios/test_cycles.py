"""What kube-scheduler and the gateway do together, also when processes die under load."""

from collections import Counter

import pytest
import yaml

from tests.scenarios.world import World
from tools.planes.embedded import ROOT, Object
from tools.planes.objects import NO_CLAIMS, node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = ("n1", "n2", "n3")
BEST = {"n1": 10, "n2": 100, "n3": 50}


async def test_cycles_go_on_while_binds_hang(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler():
        world.proxy.before.clear()
        await world.create(*(pod(f"p{i}") for i in range(5)))

        async def five_binds_hang() -> bool:
            return world.proxy.waiting >= 5

        await world.until(five_binds_hang)
        assert not any((await world.places()).values())
        world.proxy.before.set()

        await world.bound()


async def test_the_best_node_wins(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler():
        await world.create(pod("p", score=BEST))
        assert await world.bound() == {"p": "n2"}

    decision = await world.decision("p")
    assert decision["score"]["top"][0]["node"] == "n2"
    assert decision["bind"]["node"] == "n2"
    assert decision["bind"].get("error", "") == ""


async def test_scheduler_names_choose_the_profile(world: World) -> None:
    await world.nodes(node("n1", labels={"nodeGroup": "1"}), node("n2", labels={"nodeGroup": "2"}))
    group = {"nodeGroup": "1"}
    async with world.scheduler("moorage", "steered"):
        # NodeGroup is in one profile, Steered in the other: neither sees the other's wish.
        no_one = {"n1": "no"}
        await world.create(
            pod("grouped", "moorage", labels=group, reject=no_one),
            pod("steered", "steered", labels=group, reject=no_one),
        )
        assert await world.bound() == {"grouped": "n1", "steered": "n2"}


async def test_pods_of_other_schedulers_are_left_alone(world: World) -> None:
    await world.nodes(node("n1"))
    async with world.scheduler():
        await world.create(pod("other", "nobody"), pod("p"))
        await world.bound("p")
        assert (await world.places())["other"] == ""
        assert await world.events("other") == []


async def test_two_kube_schedulers_share_one_gateway(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    names = [f"{profile}-{i}" for i in range(10) for profile in ("steered", "second")]
    async with (
        world.scheduler("steered"),
        world.scheduler("second", name="second-scheduler"),
    ):
        await world.create(*(pod(name, name.partition("-")[0], score=BEST) for name in names))
        places = await world.bound(*names)

    assert set(places.values()) == {"n2"}
    assert sorted(name for name, status in world.proxy.binds if status == 201) == sorted(names)


@pytest.mark.parametrize("node_cache_capable", [True, False])
async def test_nodes_come_by_name_or_in_full(world: World, node_cache_capable: bool) -> None:
    await world.nodes(*map(node, NAMES))
    # In-tree scores see every node as idle when nodes come in full: the weight makes ours decide.
    async with world.scheduler(nodeCacheCapable=node_cache_capable, weight=100):
        await world.create(
            pod("p", score=BEST, reject={"n2": "no free slice"}),
            pod("stuck", reject=dict.fromkeys(NAMES, "no free slice")),
        )
        assert (await world.bound("p"))["p"] == "n3"
        message = await world.condition("stuck", "Unschedulable")

    assert message.startswith("0/3 nodes are available: 3 no free slice. ")
    assert (await world.decision("p"))["filter"]["nodes"] == 3


async def test_a_single_node_is_not_scored(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    asked = "moorage_extender_requests_total"
    before = await world.metric(asked, verb="prioritize", result="ok")
    async with world.scheduler():
        await world.create(pod("single", reject={"n1": "no"}, score=BEST))
        await world.bound("single")
        assert await world.metric(asked, verb="prioritize", result="ok") == before
        await world.create(pod("several", score=BEST))
        await world.bound("several")
        assert await world.metric(asked, verb="prioritize", result="ok") == before + 1


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


COUNT = 40


@pytest.mark.parametrize("victim", ["gateway", "filter", "scorer-1", "binder", "kube-scheduler"])
async def test_every_pod_is_bound_once_though_a_process_dies(world: World, victim: str) -> None:
    await world.nodes(*(node(f"n{i}") for i in range(10)))
    async with world.scheduler():
        await world.create(*(pod(f"p{i}") for i in range(COUNT)))
        await world.placed(COUNT // 10)

        program = (world.services.programs | world.schedulers)[victim]
        await program.kill()
        await program.start()
        places = await world.bound()

    assert len(places) == COUNT
    bound = Counter(name for name, status in world.proxy.binds if status == 201)
    assert all(count == 1 for count in bound.values())
    assert len(bound) == COUNT
