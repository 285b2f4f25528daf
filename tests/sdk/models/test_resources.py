"""What pods request, where no recorded pod says it: of them is `test_recorded_requests`."""

import pytest

from moorage.models import Container, Pod, PodSpec, Resources

MI = 1024 * 1024
DEFAULT_MEMORY = 200 * MI


def container(restart_policy: str = "", **requests: str) -> Container:
    return Container(resources=Resources(requests=dict(requests)), restart_policy=restart_policy)


def sidecar(**requests: str) -> Container:
    return container("Always", **requests)


def pod(
    *containers: Container, init: tuple[Container, ...] = (), own: dict[str, str] | None = None
) -> Pod:
    resources = Resources(requests=own or {})
    return Pod(spec=PodSpec(containers=containers, init_containers=init, resources=resources))


CPU, NOTHING, HUGE = container(cpu="1"), container(), container(memory="8E")
GPUS = Container(resources=Resources(requests={"nvidia.com/gpu": "2"}))
STEPS = (container(cpu="3"), container(cpu="2", memory="20Mi"))
IN_ORDER = (sidecar(cpu="1"), container(cpu="2"), sidecar(cpu="4"), container(cpu="3"))


@pytest.mark.parametrize(
    ("made", "requests"),
    [
        pytest.param(pod(GPUS, GPUS), {"nvidia.com/gpu": 4}, id="containers add up"),
        pytest.param(
            pod(container(cpu="1", memory="10Mi"), init=STEPS),
            {"cpu": 3000, "memory": 20 * MI},
            id="of steps one after the other the largest counts for each resource",
        ),
        pytest.param(pod(CPU, init=IN_ORDER), {"cpu": 8000}, id="sidecars add up in their order"),
        pytest.param(
            pod(own={"nvidia.com/gpu": "1", "hugepages-2Mi": "2Mi"}),
            {"hugepages-2Mi": 2 * MI},
            id="the pod itself requests no extended resources",
        ),
        pytest.param(
            pod(Container(resources=Resources(limits={"cpu": "1"}))),
            {},
            id="limits are not read because the API server has copied them",
        ),
        pytest.param(pod(HUGE, HUGE), {"memory": 2**63 - 1}, id="no more than fits 64 bits"),
    ],
)
def test_requests_are_those_of_containers_steps_and_the_pod(
    made: Pod, requests: dict[str, int]
) -> None:
    assert made.requests == requests


@pytest.mark.parametrize(
    ("made", "cpu", "memory"),
    [
        pytest.param(pod(), 0, 0, id="no containers"),
        pytest.param(pod(GPUS), 100, DEFAULT_MEMORY, id="only cpu and memory have defaults"),
        pytest.param(pod(NOTHING, NOTHING), 200, 2 * DEFAULT_MEMORY, id="each container"),
        pytest.param(
            pod(CPU, container(memory="1Mi")), 1100, DEFAULT_MEMORY + MI, id="each resource"
        ),
        pytest.param(pod(container(cpu="0", memory="0")), 0, 0, id="an explicit zero stays"),
        pytest.param(
            pod(NOTHING, init=(sidecar(), NOTHING)), 200, 2 * DEFAULT_MEMORY, id="a sidecar"
        ),
        pytest.param(
            pod(container(memory="1Mi"), NOTHING, own={"memory": "5Mi"}),
            200,
            5 * MI,
            id="the pod's own",
        ),
        pytest.param(
            pod(CPU, NOTHING, own={"memory": "5Mi"}), 1000, 5 * MI, id="one container says it"
        ),
        pytest.param(
            pod(NOTHING, init=(container(cpu="0"),), own={"memory": "5Mi"}),
            0,
            5 * MI,
            id="a step says it",
        ),
    ],
)
def test_for_scoring_what_nobody_requests_counts_a_little(made: Pod, cpu: int, memory: int) -> None:
    assert made.nonzero_requests == {"cpu": cpu, "memory": memory}


def test_a_request_that_is_no_quantity_is_an_error_that_quotes_it() -> None:
    with pytest.raises(ValueError, match="'lots'"):
        _ = pod(container(cpu="lots")).requests
