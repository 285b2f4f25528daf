"""Pods take the room on their nodes that a real kube-scheduler has counted for them."""

import json
from typing import Any

import msgspec
import pytest

from moorage.models import Pod, decode_node, decode_pod, encode
from moorage.testing import make_nodes
from tests.golden import DATA

RECORDED: list[Any] = json.loads((DATA / "pod-requests-1.37.json").read_text())["pods"]


def read(case: Any) -> Pod:
    metadata = {"name": "p", "namespace": "default", "uid": "u"}
    obj = {"metadata": metadata, "spec": case["spec"], "status": case["status"]}
    return decode_pod(msgspec.json.encode(obj))


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["case"]))
def test_a_pod_counts_on_its_node_what_kube_scheduler_counts(case: Any) -> None:
    pod = read(case)
    assert {key: size for key, size in pod.requests.items() if size} == case["requests"]
    node = decode_node(msgspec.json.encode({"metadata": {"name": pod.spec.node_name}}))
    for each in (pod, decode_pod(encode(pod))):  # as replicas get it
        nodes = make_nodes(node, pods=[each])
        requested = {key: int(nodes.requested(key)[0]) for key in case["requests"]}
        assert requested == case["requests"]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["case"]))
def test_a_pod_that_waits_counts_what_its_spec_says(case: Any) -> None:
    spec = {key: value for key, value in case["spec"].items() if key != "nodeName"}
    waiting = read({**case, "spec": spec})
    assert waiting == read({"spec": spec, "status": {"phase": waiting.status.phase}})


def test_statuses_that_say_what_the_spec_says_are_not_kept() -> None:
    kept = [each["case"] for each in RECORDED if read(each).status.counted is None]
    assert {"no status", "no resources in the status", "grows", "of the pod itself"} <= {*kept}


def test_defaults_for_scoring_hold_for_what_a_node_has_set_aside() -> None:
    case = next(each for each in RECORDED if each["case"] == "spec has more kinds, infeasible")
    assert read(case).nonzero_requests == {"cpu": 2000, "memory": 200 << 20}
