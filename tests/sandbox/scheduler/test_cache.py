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
    info = cache.node(name)
    assert info
    return info.free["cpu"]


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
    assert cache.node("a") is None
    cache.set_node(node("a"))
    cache.set_node(node("a", cpu="8"))
    assert free(cache, "a") == 7 * CPU
    cache.remove_node("a")
    assert (cache.node("a"), cache.nodes) == (None, [])


def test_a_pod_that_is_assumed_or_gone_is_no_nominee_any_more() -> None:
    cache, other = Cache(), pod("other")
    for name in ("assumed", "gone"):
        cache.pods[name] = pod(name)
        cache.nominate(cache.pods[name], "a")
    assert {nominee.uid for nominee in cache.nominees("a", other)} == {"assumed", "gone"}
    cache.assume(cache.pods["assumed"], "a")
    cache.remove_pod("gone")
    assert cache.nominees("a", other) == []
    assert not cache.holds_room
