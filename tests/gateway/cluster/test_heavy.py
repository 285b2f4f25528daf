from gateway.cluster.heavy import HEAVY_BYTES, MOST_BYTES, SHOWN
from gateway.cluster.pods import decode_seen_pod
from gateway.cluster.state import ClusterState
from moorage.models import encode
from moorage.testing import make_pod

HALF = MOST_BYTES // 2


def test_large_pods_are_counted_by_namespace_until_they_are_gone() -> None:
    state = ClusterState()
    state.set_pod(make_pod("light"), size=HEAVY_BYTES - 1)
    state.set_pod(make_pod("a", namespace="tenant"), size=HEAVY_BYTES)
    state.set_pod(make_pod("b", namespace="tenant"), size=2 * HEAVY_BYTES)
    state.set_pod(make_pod("c", namespace="other"), size=HEAVY_BYTES)
    assert state.heavy.largest() == {"tenant": 3 * HEAVY_BYTES, "other": HEAVY_BYTES}
    state.set_pod(make_pod("b", namespace="tenant", node="n"), size=HEAVY_BYTES)
    assert state.heavy.largest()["tenant"] == 2 * HEAVY_BYTES
    for uid in state.known_pods():
        state.drop_pod(uid)
    assert not state.heavy.largest()
    assert not state.heavy.of


def test_past_its_limit_a_namespace_s_large_pods_are_kept_without_labels_and_annotations() -> None:
    state = ClusterState()

    def kept(name: str, namespace: str) -> bool:
        pod = make_pod(name, namespace=namespace, labels={"a": "b"}, requests={"cpu": "1"})
        state.set_pod(pod, size=HALF)
        known = state.pods.get(pod.uid)
        assert known is not None
        assert known.requests == pod.requests
        return known.labels == {"a": "b"}

    assert [kept(name, "tenant") for name in "abc"] == [True, True, False]
    assert kept("d", "other")
    small = make_pod("e", namespace="tenant", labels={"a": "b"})
    state.set_pod(small, size=100)
    assert state.pods.get(small.uid) == small


def test_a_metric_has_the_namespaces_with_most() -> None:
    state = ClusterState()
    for number in range(3 * SHOWN):
        state.set_pod(make_pod("p", namespace=f"n{number}"), size=HEAVY_BYTES + number)
    assert len(state.heavy.largest()) == SHOWN
    assert next(iter(state.heavy.largest())) == f"n{3 * SHOWN - 1}"


def test_the_size_is_that_which_the_api_server_sent() -> None:
    raw = encode(make_pod("p"))
    assert decode_seen_pod(raw).size == len(raw)
