from typing import Any

from sandbox.scheduler.cache import Cache, KnownPod
from tests.sandbox.scheduler.support import known_pod, requesting

CPU = 1000  # millicores


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "pods": "110"}}
    return {"metadata": {"name": name}, "spec": {}, "status": status}


def pod(name: str, cpu: str = "1", **spec: Any) -> KnownPod:
    return known_pod(name, **requesting(cpu=cpu), **spec)


def free(cache: Cache, name: str) -> int:
    nodes = cache.one(cache.nodes[name])
    return int(nodes.allocatable("cpu")[0] - nodes.requested("cpu")[0])


def test_assumed_pods_take_room_until_they_are_forgotten() -> None:
    cache = Cache()
    cache.set_node(node("a"))
    cache.assume(pod("web"), "a")
    assert free(cache, "a") == 3 * CPU
    cache.forget("web")
    assert free(cache, "a") == 4 * CPU


def test_a_bound_pod_is_not_forgotten() -> None:
    cache = Cache()
    cache.set_node(node("a"))
    cache.assume(pod("web"), "a")
    cache.set_pod(pod("web", nodeName="a"))
    cache.forget("web")
    assert not cache.is_assumed("web")
    assert free(cache, "a") == 3 * CPU


def test_a_pod_bound_to_another_node_than_assumed_moves() -> None:
    cache = Cache()
    for name in ("a", "b"):
        cache.set_node(node(name))
    cache.assume(pod("web"), "a")
    cache.set_pod(pod("web", nodeName="b"))
    assert (free(cache, "a"), free(cache, "b")) == (4 * CPU, 3 * CPU)


def test_a_changed_node_keeps_its_pods() -> None:
    cache = Cache()
    cache.set_pod(pod("early", nodeName="a"))  # its node is not known yet
    cache.set_node(node("a"))
    cache.set_node(node("a", cpu="8"))
    assert free(cache, "a") == 7 * CPU


def test_nodes_keep_the_order_of_their_arrival_and_pods_survive_their_node() -> None:
    cache = Cache()
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
    cache, visitor = Cache(), pod("visitor", cpu="2")
    cache.set_node(node("a"))
    cache.set_pod(pod("web", nodeName="a"))
    with cache.trial(cache.nodes["a"], [visitor]) as trial:
        assert free(cache, "a") == CPU
        trial.remove(cache.pods["web"])
        assert free(cache, "a") == 2 * CPU
    assert free(cache, "a") == 3 * CPU


def test_a_pod_that_is_assumed_or_gone_is_no_nominee_any_more() -> None:
    cache, other = Cache(), pod("other")
    for name in ("assumed", "gone"):
        cache.pods[name] = pod(name)
        cache.nominate(cache.pods[name], "a")
    assert {nominee.uid for nominee in cache.nominees("a", other)} == {"assumed", "gone"}
    cache.assume(cache.pods["assumed"], "a")
    cache.remove_pod("gone")
    assert cache.nominees("a", other) == []
    assert not cache.held_nodes
