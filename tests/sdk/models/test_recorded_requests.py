"""Pods take the room on their nodes that a real kube-scheduler has counted for them."""

import json
from typing import Any

import msgspec
import pytest

from moorage.models import Container, Pod, PodSpec, Resources, decode_node, decode_pod, encode
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


def requesting(**amounts: str) -> Container:
    return Container(resources=Resources(requests=amounts))


MIB = 1 << 20
CPU, NOTHING = requesting(cpu="1"), requesting()
SIDECAR = Container(restart_policy="Always")


@pytest.mark.parametrize(
    ("containers", "steps", "own", "cpu", "memory"),
    [
        pytest.param((), (), "0", 0, 0, id="no containers"),
        pytest.param((NOTHING, NOTHING), (), "0", 200, 400, id="each container"),
        pytest.param((CPU, requesting(memory="1Mi")), (), "0", 1100, 201, id="each resource"),
        pytest.param((requesting(cpu="0", memory="0"),), (), "0", 0, 0, id="a zero stays"),
        pytest.param((NOTHING,), (SIDECAR, NOTHING), "0", 200, 400, id="a sidecar"),
        pytest.param((requesting(memory="1Mi"), NOTHING), (), "5Mi", 200, 5, id="the pod's own"),
        pytest.param((CPU, NOTHING), (), "5Mi", 1000, 5, id="one container says it"),
        pytest.param((NOTHING,), (requesting(cpu="0"),), "5Mi", 0, 5, id="a step says it"),
    ],
)
def test_for_scoring_what_nobody_requests_counts_a_little(
    containers: tuple[Container, ...],
    steps: tuple[Container, ...],
    own: str,
    cpu: int,
    memory: int,
) -> None:
    resources = Resources(requests={} if own == "0" else {"memory": own})
    spec = PodSpec(containers=containers, init_containers=steps, resources=resources)
    assert Pod(spec=spec).nonzero_requests == {"cpu": cpu, "memory": memory * MIB}


def test_no_more_is_requested_than_fits_64_bits_and_what_is_no_quantity_is_quoted() -> None:
    huge = requesting(memory="8E")
    assert Pod(spec=PodSpec(containers=(huge, huge))).requests == {"memory": 2**63 - 1}
    with pytest.raises(ValueError, match="'lots'"):
        _ = Pod(spec=PodSpec(containers=(requesting(cpu="lots"),))).requests
