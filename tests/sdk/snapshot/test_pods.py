"""Pods counted by what they are, against a look at each pod."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import CarriedTerm
from moorage.models import (
    Affinity,
    LabelSelector,
    NodeManifest,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Requirement,
    WeightedPodAffinityTerm,
)
from moorage.rules import selects_pod
from moorage.snapshot import Snapshot
from moorage.snapshot.columns.encoded import Shared
from moorage.testing import make_node, make_nodes, make_pod
from tests.clusters import NAMESPACES, Cluster, clusters, pod_labels, pod_terms

WEB = LabelSelector(match_labels={"app": "web"})
ALL = PodAffinityTerm(label_selector=LabelSelector())


def apart(selector: LabelSelector, key: str = "zone", *, times: int = 1) -> Affinity:
    term = PodAffinityTerm(label_selector=selector, topology_key=key)
    return Affinity(pod_anti_affinity=PodAffinity(required=(term,) * times))


def count(snapshot: Snapshot, *terms: PodAffinityTerm) -> list[int]:
    counts: list[int] = snapshot.nodes().count_pods(terms, "default").tolist()
    return counts


def test_a_namespace_selector_may_ask_for_names_only() -> None:
    nodes = make_nodes(make_node("n1"), pods=[make_pod("a", node="n1", namespace="team")])
    name = {"kubernetes.io/metadata.name": "team"}
    named = replace(ALL, namespace_selector=LabelSelector(match_labels=name))
    assert nodes.count_pods([named], "default").tolist() == [1]
    other = LabelSelector(match_labels={"kubernetes.io/metadata.name": "other"})
    either = replace(ALL, namespaces=("team",), namespace_selector=other)
    assert nodes.count_pods([either], "default").tolist() == [1]
    assert nodes.count_pods([replace(either, namespaces=())], "team").tolist() == [0]
    unknown = replace(ALL, namespace_selector=LabelSelector(match_labels={"env": "prod"}))
    with pytest.raises(ValueError, match="the label 'env' of namespaces is not known here"):
        nodes.count_pods([unknown], "default")
    exists = Requirement(key="env", operator="Exists")
    unknown = replace(ALL, namespace_selector=LabelSelector(match_expressions=(exists,)))
    with pytest.raises(ValueError, match="the label 'env' of namespaces is not known here"):
        nodes.count_pods([unknown], "default")


def test_many_different_pods_come_and_go() -> None:
    snapshot = Snapshot()
    snapshot.set_node(0, make_node("n0"))
    pods = [make_pod(f"p{n}", labels={"n": str(n)}, affinity=apart(WEB)) for n in range(600)]
    last = PodAffinityTerm(label_selector=LabelSelector(match_labels={"n": "599"}))
    for _ in range(2):
        for pod in pods:
            snapshot.place_pod(0, pod)
        assert (count(snapshot, ALL), count(snapshot, last)) == ([600], [1])
        about = snapshot.nodes().terms_about(make_pod(labels={"app": "web"}))
        assert [amounts.tolist() for amounts in about.values()] == [[600]]
        for pod in pods:
            snapshot.remove_pod(pod.uid)
        assert (count(snapshot, ALL), count(snapshot, last)) == ([0], [0])
        assert not snapshot.nodes().terms_about(make_pod(labels={"app": "web"}))


def test_numbers_are_used_again_so_that_tables_stay_small() -> None:
    shared: Shared[str] = Shared()
    kept = shared.use("kept")
    for number in range(100):
        shared.release(shared.use(str(number)))
    assert (len(shared), shared.bound, shared.value(kept)) == (1, 3, "kept")
    shared.release(kept)
    assert list(shared.items()) == []


def test_what_cannot_be_decided_about_others_selects_nothing() -> None:
    unknown = LabelSelector(match_labels={"env": "prod"})
    term = PodAffinityTerm(label_selector=WEB, namespace_selector=unknown, topology_key="zone")
    affinity = Affinity(pod_anti_affinity=PodAffinity(required=(term,)))
    nodes = make_nodes(make_node("n1"), pods=[make_pod("a", node="n1", affinity=affinity)])
    assert not nodes.terms_about(make_pod(labels={"app": "web"}))


def test_weights_beyond_64_bits_do_no_harm() -> None:
    wish = WeightedPodAffinityTerm(
        weight=2**70, pod_affinity_term=PodAffinityTerm(label_selector=WEB)
    )
    pod = make_pod("a", node="n1", affinity=Affinity(pod_affinity=PodAffinity(preferred=(wish,))))
    nodes = make_nodes(make_node("n1"), pods=[pod])
    assert len(nodes.terms_about(make_pod(labels={"app": "web"}))) == 1


@given(clusters(), st.lists(pod_terms, max_size=2), st.sampled_from(NAMESPACES), st.booleans())
def test_counts_agree_with_a_look_at_each_pod(
    cluster: Cluster, terms: list[PodAffinityTerm], namespace: str, terminating: bool
) -> None:
    def counted(pod: Pod) -> bool:
        alive = terminating or not pod.is_terminating
        return alive and all(selects_pod(term, namespace, pod) for term in terms)

    expected = [sum(map(counted, cluster.pods_on(node))) for node in cluster.nodes]
    nodes = make_nodes(*cluster.nodes, pods=cluster.pods)
    assert nodes.count_pods(terms, namespace, terminating=terminating).tolist() == expected


@given(clusters(), pod_labels, st.sampled_from(NAMESPACES))
def test_terms_agree_with_a_look_at_each_pod(
    cluster: Cluster, labels: dict[str, str], namespace: str
) -> None:
    pod = make_pod(labels=labels, namespace=namespace)

    def about(node: NodeManifest) -> Counter[CarriedTerm]:
        return Counter(
            carried
            for other in cluster.pods_on(node)
            for carried, term in terms_of(other)
            if selects_pod(term, other.namespace, pod)
        )

    found = make_nodes(*cluster.nodes, pods=cluster.pods).terms_about(pod)
    expected = [about(node) for node in cluster.nodes]
    for position, terms in enumerate(expected):
        assert Counter({t: int(n[position]) for t, n in found.items() if n[position]}) == terms
    assert set(found) == {term for terms in expected for term in terms}


def terms_of(pod: Pod) -> list[tuple[CarriedTerm, PodAffinityTerm]]:
    affinity = pod.spec.affinity or Affinity()
    sides = ((False, affinity.pod_affinity), (True, affinity.pod_anti_affinity))
    required = [(anti, None, term) for anti, side in sides if side for term in side.required]
    preferred = [
        (anti, wish.weight, wish.pod_affinity_term)
        for anti, side in sides
        if side
        for wish in side.preferred
    ]
    return [
        (CarriedTerm(topology_key=term.topology_key, anti=anti, weight=weight), term)
        for anti, weight, term in [*required, *preferred]
    ]
