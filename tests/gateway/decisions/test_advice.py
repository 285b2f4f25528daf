"""What helps, by what the nodes lack and what kube-scheduler says."""

import pytest

from gateway.decisions.advice import advice
from gateway.decisions.explanation import Obstacle, RejectedNodes, Survey

GPU = "example.com/gpu"
CPU, NO_GPU = Obstacle("short", "cpu"), Obstacle("none", GPU)
CORDONED, UNREACHABLE = (
    Obstacle("cordoned"),
    Obstacle("tainted", "node.kubernetes.io/unreachable:NoSchedule"),
)
LACKS_GPU = f"Insufficient {GPU}"


def survey(by_obstacles: dict[tuple[Obstacle, ...], list[str]], **largest: int) -> Survey:
    usable = [name for names in by_obstacles.values() for name in names]
    return Survey(
        nodes=9,
        usable=usable,
        by_obstacles=by_obstacles,
        requests={"cpu": 1000, GPU: 1},
        largest={"cpu": 8000, GPU: 0, **largest},
    )


@pytest.mark.parametrize(
    ("lacking", "reasons", "steps"),
    [
        (
            survey({(CPU, NO_GPU): ["a"], (NO_GPU,): ["b"]}),
            [LACKS_GPU, "Insufficient cpu"],
            [
                f"no node that the pod may use offers {GPU}: add one that does, or lower the ",
            ],
        ),
        (
            survey({(CPU, NO_GPU): ["a"]}),
            [LACKS_GPU, "Insufficient cpu"],
            [
                f"no node that the pod may use offers {GPU}: add one that does, or lower the ",
            ],
        ),
        (  # a DeviceClass backs it: nobody says that it is short
            survey({(CPU, NO_GPU): ["a"]}),
            ["Insufficient cpu"],
            ["free cpu on a, add a node, or lower the pod's requests of cpu"],
        ),
        (
            survey({(CPU, CORDONED): ["a"], (CPU, UNREACHABLE): ["b", "c"]}),
            ["Insufficient cpu"],
            ["on a: free cpu and uncordon it"],
        ),
        (
            survey({(UNREACHABLE,): ["b"], (CPU,): ["a"], (CORDONED,): ["c"]}),
            ["Insufficient cpu"],
            [
                "uncordon c",
                "see why b has the taint node.kubernetes.io/unreachable:NoSchedule, which ",
            ],
        ),
        (
            survey({(): ["a"], (CPU,): ["b"]}),
            ["Insufficient cpu"],
            ["wait: a suits it by now, as far as the gateway sees"],
        ),
        (
            survey({(): ["a"], (CPU,): ["b"]}),
            ["Insufficient cpu", "node(s) didn't match pod topology spread constraints"],
            [
                "relax the pod's topologySpreadConstraints",
                "free cpu on b, add a node, or lower the pod's requests of cpu",
            ],
        ),
    ],
)
def test_each_step_would_do(lacking: Survey, reasons: list[str], steps: list[str]) -> None:
    rejections = [RejectedNodes(nodes=1, reason=each, by="kube-scheduler") for each in reasons]
    found = advice(rejections, lacking, {})
    assert len(found) == len(steps)
    assert all(each.startswith(step) for each, step in zip(found, steps, strict=True))
