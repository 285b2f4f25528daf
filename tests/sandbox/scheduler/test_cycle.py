"""What a cycle knows, which nodes it looks at, and what it says when none fits."""

from typing import Any

import pytest

from moorage.execution import PluginRejection
from moorage_host.kube_scheduler.attempt import SchedulingAttempt
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


def test_a_pod_bound_to_another_node_than_assumed_moves() -> None:
    cache = SchedulerCache()
    for name in ("a", "b"):
        cache.set_node(node(name))
    cache.assume(pod("web"), "a")
    cache.set_pod(pod("web", nodeName="b"))
    assert (free(cache, "a"), free(cache, "b")) == (4 * CPU, 3 * CPU)


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


@pytest.mark.parametrize(
    ("nodes", "percentage", "sample"),
    [
        *((1, 0, 1), (99, 0, 99), (100, 0, 100), (200, 0, 100), (500, 0, 230), (1000, 0, 420)),
        *((2000, 0, 680), (5000, 0, 500), (6000, 0, 300), (10000, 0, 500)),
        *((5000, 100, 5000), (5000, 10, 500), (500, 10, 100)),  # never below 100 nodes
    ],
)
def test_the_sample_is_kube_schedulers(nodes: int, percentage: int, sample: int) -> None:
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


NO = PluginRejection("Some", "no")
SHORT = PluginRejection("NodeResourcesFit", "Insufficient cpu, Too many pods")


@pytest.mark.parametrize(
    ("nodes", "fields", "message"),
    [
        (
            *(12, {"rejections": dict.fromkeys("abcdefghij", NO) | {"m": SHORT}}),
            "1 Insufficient cpu, 1 Too many pods, 10 no.",
        ),
        (5, {"rejections": {"a": NO}}, "1 no."),
        (3, {"rejections": {"a": NO}, "elsewhere": "elsewhere"}, "1 no, 2 elsewhere."),
        (
            *(1, {"rejections": {"a": NO}, "aftermath": "preemption: in vain"}),
            "1 no. preemption: in vain",
        ),
        (2, {"conflict": "terms conflict", "aftermath": "preemption: no"}, "terms conflict. pree"),
    ],
)
def test_what_a_pod_is_told(nodes: int, fields: dict[str, Any], message: str) -> None:
    attempt = SchedulingAttempt(pod=known_pod(), nodes=nodes, **fields)
    assert attempt.message.startswith(f"0/{nodes} nodes are available: {message}")
