"""What a cycle knows, which nodes it looks at, and what it says when none fits."""

from typing import Any

import pytest

from moorage.execution import PluginRejection
from moorage_host.kube_scheduler.attempt import SchedulingAttempt, summary
from moorage_host.kube_scheduler.cache import KnownPod, SchedulerCache
from moorage_host.kube_scheduler.cycle import sample_size
from tests.sandbox.scheduler.support import World, known_pod, requesting
from tools.inprocess.extender import node_names
from tools.waiting import until

CPU = 1000  # millicores


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "pods": "110"}}
    return {"metadata": {"name": name}, "spec": {}, "status": status}


def pod(name: str, cpu: str = "1", **spec: Any) -> KnownPod:
    return known_pod(name, **requesting(cpu=cpu), **spec)


def free(cache: SchedulerCache, name: str) -> int:
    nodes = cache.one(cache.nodes[name])
    return int(nodes.allocatable("cpu")[0] - nodes.requested("cpu")[0])


def test_assumed_pods_take_room_until_they_are_forgotten() -> None:
    cache = SchedulerCache()
    cache.set_node(node("a"))
    cache.assume(pod("web"), "a")
    assert free(cache, "a") == 3 * CPU
    cache.forget("web")
    assert free(cache, "a") == 4 * CPU


def test_a_bound_pod_is_not_forgotten() -> None:
    cache = SchedulerCache()
    cache.set_node(node("a"))
    cache.assume(pod("web"), "a")
    cache.set_pod(pod("web", nodeName="a"))
    cache.forget("web")
    assert not cache.is_assumed("web")
    assert free(cache, "a") == 3 * CPU


def test_a_pod_bound_to_another_node_than_assumed_moves() -> None:
    cache = SchedulerCache()
    for name in ("a", "b"):
        cache.set_node(node(name))
    cache.assume(pod("web"), "a")
    cache.set_pod(pod("web", nodeName="b"))
    assert (free(cache, "a"), free(cache, "b")) == (4 * CPU, 3 * CPU)


def test_a_changed_node_keeps_its_pods() -> None:
    cache = SchedulerCache()
    cache.set_pod(pod("early", nodeName="a"))  # its node is not known yet
    cache.set_node(node("a"))
    cache.set_node(node("a", cpu="8"))
    assert free(cache, "a") == 7 * CPU


def test_nodes_keep_the_order_of_their_arrival_and_pods_survive_their_node() -> None:
    cache = SchedulerCache()
    for name in ("a", "b", "c"):
        cache.set_node(node(name))
    cache.set_pod(pod("web", nodeName="b"))
    cache.remove_node("b")
    assert cache.in_order(0).names == ["a", "c"]
    cache.set_node(node("d"))
    cache.set_node(node("b"))
    assert cache.in_order(0).names == ["a", "c", "d", "b"]
    assert cache.in_order(3).names == ["b", "a", "c", "d"]
    assert cache.rows_of(["d", "nobody"]).tolist() == [cache.nodes["d"].row, -1]
    assert free(cache, "b") == 3 * CPU
    cache.remove_pod("web")
    assert free(cache, "b") == 4 * CPU


def test_what_is_tried_on_a_node_is_put_back() -> None:
    cache, visitor = SchedulerCache(), pod("visitor", cpu="2")
    cache.set_node(node("a"))
    cache.set_pod(pod("web", nodeName="a"))
    with cache.trial(cache.nodes["a"], [visitor]) as trial:
        assert free(cache, "a") == CPU
        trial.remove(cache.pods["web"])
        assert free(cache, "a") == 2 * CPU
    assert free(cache, "a") == 3 * CPU


def test_a_pod_that_is_assumed_or_gone_is_no_nominee_any_more() -> None:
    cache, other = SchedulerCache(), pod("other")
    for name in ("assumed", "gone"):
        cache.pods[name] = pod(name)
        cache.nominate(cache.pods[name], "a")
    assert {nominee.uid for nominee in cache.nominees("a", other)} == {"assumed", "gone"}
    cache.assume(cache.pods["assumed"], "a")
    cache.remove_pod("gone")
    assert cache.nominees("a", other) == []
    assert not cache.held_nodes


@pytest.mark.parametrize(
    ("nodes", "sample"),
    [
        (1, 1),
        (99, 99),
        (100, 100),
        (200, 100),
        (500, 230),
        (1000, 420),
        (2000, 680),
        (5000, 500),
        (6000, 300),
        (10000, 500),
    ],
)
def test_the_adaptive_sample_is_kube_schedulers(nodes: int, sample: int) -> None:
    assert sample_size(nodes, 0) == sample


@pytest.mark.parametrize(
    ("nodes", "percentage", "sample"), [(5000, 100, 5000), (5000, 10, 500), (500, 10, 100)]
)
def test_a_percentage_is_taken_but_never_below_100_nodes(
    nodes: int, percentage: int, sample: int
) -> None:
    assert sample_size(nodes, percentage) == sample


async def test_each_pod_starts_where_the_search_for_the_last_one_ended(world: World) -> None:
    for index in range(150):
        world.node(f"n{index:03}")
    for name in ("first", "second", "third"):
        world.pod(name)
    async with world.scheduler({"filterVerb": "filter", "nodeCacheCapable": True}):
        await until(world.placed("first", "second", "third"))
    samples = [node_names(body) for body in world.extender.bodies("filter")]
    assert [len(names) for names in samples] == [100, 100, 100]
    assert [names[0] for names in samples] == ["n000", "n100", "n050"]
    assert [names[-1] for names in samples] == ["n099", "n049", "n149"]


async def test_a_percentage_of_100_shows_every_node(world: World) -> None:
    for index in range(150):
        world.node(f"n{index:03}")
    world.pod("web")
    async with world.scheduler(
        {"filterVerb": "filter", "nodeCacheCapable": True}, percentageOfNodesToScore=100
    ):
        await until(world.placed("web"))
    assert len(node_names(world.extender.calls[0].json)) == 150


async def test_a_pod_of_a_daemon_set_is_searched_only_on_its_node(world: World) -> None:
    for index in range(3):
        world.node(f"n{index}")
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    world.pod("agent", affinity=affinity)
    async with world.scheduler({"filterVerb": "filter", "nodeCacheCapable": True}):
        await until(world.placed("agent"))
    assert node_names(world.extender.calls[0].json) == ["n1"]


def rejection(text: str, plugin: str = "Some") -> PluginRejection:
    return PluginRejection(plugin, text)


def test_equal_reasons_are_counted_and_sorted_as_text() -> None:
    rejections = {f"n{i}": rejection("too hot") for i in range(10)}
    rejections |= {
        "m1": rejection("Insufficient cpu, Too many pods", "NodeResourcesFit"),
        "m2": rejection("cold"),
    }
    assert summary(12, rejections) == (
        "0/12 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 cold, 10 too hot."
    )


def test_nodes_without_a_reason_do_not_add_up() -> None:
    assert summary(5, {"a": rejection("no")}) == "0/5 nodes are available: 1 no."
    assert summary(5, {}) == "0/5 nodes are available:"


def test_nodes_that_were_not_evaluated_can_have_a_reason() -> None:
    attempt = SchedulingAttempt(
        pod=known_pod(), nodes=3, rejections={"a": rejection("no")}, elsewhere="elsewhere"
    )
    assert attempt.message == "0/3 nodes are available: 1 no, 2 elsewhere."


def test_the_outcome_of_preemption_comes_after_the_reasons() -> None:
    aftermath = "preemption: in vain"
    rejections = {"a": rejection("no")}
    attempt = SchedulingAttempt(
        pod=known_pod(), nodes=1, rejections=rejections, aftermath=aftermath
    )
    assert attempt.message == "0/1 nodes are available: 1 no. preemption: in vain"


def test_a_conflict_is_the_only_reason() -> None:
    attempt = SchedulingAttempt(
        pod=known_pod(),
        nodes=2,
        conflict="pod affinity terms conflict",
        aftermath="preemption: no",
    )
    assert attempt.message == (
        "0/2 nodes are available: pod affinity terms conflict. preemption: no"
    )
