import gc
import json
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moorage.models import (
    NodeManifest,
    decode_node,
    decode_passing_pod,
    decode_pod,
    encode,
    interning,
)
from moorage.models.decoding import decode_passing_node, share_changed_node, share_changed_pod
from moorage.models.interning import Interned

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def web(number: int, **spec: object) -> dict[str, Any]:
    """One of many pods of a ReplicaSet."""
    token = {"name": f"token-{number}", "projected": {}}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}}
    return {
        "metadata": {
            "name": f"web-{number}",
            "namespace": "team",
            "labels": {"app": "web", "tier": "front"},
            "annotations": {"scrape": "yes", LAST_APPLIED: f"copy of {number}"},
            "ownerReferences": [{"name": "web", "controller": True}],
        },
        "spec": {
            "nodeName": f"n{number}",
            "containers": [{"image": "web:1", "resources": {"requests": {"cpu": "1"}}}],
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "volumes": [token, claim],
            **spec,
        },
        "status": {"phase": "Running"},
    }


def test_pods_of_one_template_share_all_that_they_have_in_common() -> None:
    one, two = (decode_pod(json.dumps(web(number))) for number in (1, 2))
    assert one.labels is two.labels
    assert one.annotations is two.annotations
    assert one.metadata.namespace is two.metadata.namespace
    assert one.metadata.owner_references is two.metadata.owner_references
    assert one.spec.containers is two.spec.containers
    assert one.spec.tolerations is two.spec.tolerations
    assert one.status is two.status
    assert one.requests is two.requests
    assert one.nonzero_requests is two.nonzero_requests


def test_a_passing_pod_is_the_same_and_shares_nothing() -> None:
    text = json.dumps(web(1))
    one, passing = decode_pod(text), decode_passing_pod(text)
    assert passing == one
    assert passing.labels is not one.labels
    assert passing.spec.containers is not one.spec.containers


def test_what_scheduling_does_not_read_is_dropped_on_decoding() -> None:
    one = decode_pod(json.dumps(web(1)))
    assert LAST_APPLIED not in one.annotations
    assert [volume.name for volume in one.spec.volumes] == ["data"]
    assert b"copy of" not in encode(one)
    node = decode_node(json.dumps({"metadata": {"annotations": {LAST_APPLIED: "x", "a": "b"}}}))
    assert node.metadata.annotations == {"a": "b"}


def node(number: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"n{number}", "labels": {"host": f"n{number}", "zone": "zone-a"}},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi"},
            "images": [
                {"names": [f"only-{number}"], "sizeBytes": number},
                {"names": ["a:1"], "sizeBytes": 5},
            ],
        },
    }


def test_nodes_share_images_allocatable_and_the_values_of_labels() -> None:
    one, two = (decode_node(json.dumps(node(number))) for number in (1, 2))
    assert one.status.images[0] != two.status.images[0]
    assert one.status.images[1] is two.status.images[1]
    assert one.status.allocatable is two.status.allocatable
    assert one.metadata.labels["zone"] is two.metadata.labels["zone"]
    assert one.metadata.labels["host"] == "n1"


def test_the_garbage_collector_has_nothing_of_pods_to_look_at() -> None:
    objects = [web(number) for number in range(200)]
    for number, obj in enumerate(objects):
        obj["metadata"]["labels"]["index"] = f"{number}"  # as in a StatefulSet
    texts = [json.dumps(obj).encode() for obj in objects]
    gc.collect()
    before = len(gc.get_objects())
    pods = [decode_pod(text) for text in texts]
    assert all(pod.requests and pod.nonzero_requests and not pod.host_ports for pod in pods)
    gc.collect()
    assert (len(gc.get_objects()) - before) / len(pods) < 0.1


def test_pods_that_are_all_unlike_leave_no_more_behind_than_the_tables_hold() -> None:
    def churn(start: int) -> int:
        for number in range(start, start + interning.TEXT_CAPACITY):
            image = {"image": f"web:{number}", "resources": {"requests": {"cpu": f"{number}m"}}}
            pod = web(number, containers=[image])
            pod["metadata"]["labels"] = {f"label-{number}": f"value-{number}"}
            assert decode_pod(json.dumps(pod)).requests == {"cpu": number}
        gc.collect()
        return sys.getallocatedblocks()

    full = churn(1)
    assert abs(churn(10**6) - full) < interning.CAPACITY


values = st.recursive(
    st.integers() | st.text() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(values, max_size=10))
def test_interning_never_changes_a_value(several: list[object]) -> None:
    interned: Interned[object] = Interned()
    for value in several:
        known = interned(value)
        assert (known, type(known)) == (value, type(value))


def test_a_pod_with_too_many_constraints_is_kept_without_them_and_its_resources_count() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term] * 2000}
    text = json.dumps(web(1, affinity={"podAntiAffinity": terms}, nodeSelector={"disk": "ssd"}))
    pod, passing = decode_pod(text), decode_passing_pod(text)
    assert passing.spec.affinity is not None, "what a call is about is judged as it is, or refused"
    assert (pod.spec.affinity, pod.spec.tolerations, dict(pod.spec.node_selector)) == (None, (), {})
    assert pod.requests == passing.requests
    assert (pod.spec.node_name, pod.labels) == ("n1", passing.labels)


def test_an_event_that_changes_nothing_that_is_read_gives_the_pod_that_is_known() -> None:
    known = decode_pod(json.dumps(web(1)))
    event = web(1) | {"status": {"phase": "Running", "podIP": "10.0.0.1"}}
    assert share_changed_pod(decode_passing_pod(json.dumps(event)), known) is known


def test_a_pod_that_moves_or_runs_shares_all_the_rest_with_itself() -> None:
    known = decode_pod(json.dumps(web(1, nodeName="") | {"status": {"phase": "Pending"}}))
    text = json.dumps(web(1))
    shared = share_changed_pod(decode_passing_pod(text), known)
    assert shared == decode_pod(text)
    assert shared is not None
    assert shared.metadata is known.metadata
    assert shared.spec.containers is known.spec.containers
    assert shared.spec.node_name == "n1"
    assert shared.status is decode_pod(text).status


def test_a_pod_that_is_another_or_has_other_labels_or_tolerations_is_shared_anew() -> None:
    known, labelled = decode_pod(json.dumps(web(1))), web(1)
    labelled["metadata"]["labels"]["app"] = "api"
    for other in (web(2), web(1, tolerations=[]), labelled):
        assert share_changed_pod(decode_passing_pod(json.dumps(other)), known) is None


def test_an_event_of_a_node_shares_what_has_not_changed_with_the_node_before() -> None:
    known = decode_node(json.dumps(node(1)))

    def seen(event: dict[str, Any]) -> NodeManifest:
        shared = share_changed_node(decode_passing_node(json.dumps(event)), known)
        assert shared == decode_node(json.dumps(event))
        return shared

    event = node(1)
    event["metadata"]["resourceVersion"] = "7"
    assert seen(event) is known
    event["metadata"]["labels"]["new"] = "yes"
    labelled = seen(event)
    assert labelled.metadata.labels["new"] == "yes"
    assert (labelled.spec, labelled.status) == (known.spec, known.status)
    assert labelled.status is known.status
    event["spec"] = {"unschedulable": True}
    assert seen(event).spec.unschedulable
    event["status"]["allocatable"]["cpu"] = "1"
    assert seen(event).allocatable["cpu"] == 1000
