"""Reading pauses, and pods that are replaced."""

import gc
import math

from prometheus_client import CollectorRegistry, generate_latest

from bench.growth.cliffs import pauses_between, read_pauses
from bench.processes.apiserver import PODS, fill, replace_pod
from moorage_host.process.pauses import GarbagePauses
from sandbox.apiserver.store.store import Store


def test_pauses_are_read_as_they_are_told() -> None:
    registry = CollectorRegistry()
    pauses = GarbagePauses(registry)
    try:
        before = read_pauses(generate_latest(registry).decode())
        for generation in (0, 1, 2):
            gc.collect(generation)
        after = read_pauses(generate_latest(registry).decode())
    finally:
        pauses.stop()
    found = pauses_between(before, after, 3600.0)  # however much this process holds
    assert found.count >= 3
    assert 0 < found.share < 1
    assert found.longest > 0


def test_the_longest_pause_is_the_bound_that_none_exceeds() -> None:
    before = {"0.01": 5.0, "0.1": 6.0, "+Inf": 6.0, "sum": 0.1, "count": 6.0}
    after = {"0.01": 7.0, "0.1": 9.0, "+Inf": 9.0, "sum": 0.3, "count": 9.0}
    found = pauses_between(before, after, 10.0)
    assert (found.count, found.longest) == (3, 100.0)
    assert math.isclose(found.share, 0.02)
    assert pauses_between(after, after, 10.0).longest == 0
    beyond = pauses_between(before, {**after, "+Inf": 10.0, "count": 10.0}, 10.0)
    assert math.isinf(beyond.longest)


def test_a_pod_that_is_replaced_comes_back_elsewhere() -> None:
    store, nodes = Store(history=100), 5
    fill(store, nodes, 4)

    def places() -> dict[str, tuple[str, str]]:
        pods = [item.object for item in store.collection(PODS).list(None)]
        return {p["metadata"]["name"]: (p["metadata"]["uid"], p["spec"]["nodeName"]) for p in pods}

    before = places()
    for number in range(4 * nodes):
        replace_pod(store, number, nodes)
    after = places()
    assert after.keys() == before.keys()
    for name, (uid, node) in after.items():
        assert before[name][0] != uid
        assert before[name][1] != node
