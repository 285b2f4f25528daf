import math

import pytest

from moorage.testing import make_pod, run_score
from services.scorer.plugins.load.safe_balance import SafeBalance
from tests.annotated import loaded_node

GIB = 1024**3


@pytest.mark.parametrize(
    ("free", "deviation", "demand", "original"),
    [  # millicores of 4000; the original's score, 0..10
        (2500, 400, 500, 6),
        (1000, 400, 500, 4),
        (1000, 100, 500, 5),
        (600, 800, 200, 3),
        (4000, 0, 0, 10),
        (0, 0, 500, 5),
        (2000, 1990, 0, 4),
    ],
)
def test_low_and_steady_load_is_preferred_as_in_the_original(
    free: float, deviation: float, demand: int, original: int
) -> None:
    pod = make_pod(requests={"cpu": f"{demand}m"})
    node = loaded_node(free_cpu=free, std_cpu=deviation)
    (score,) = run_score(SafeBalance(), pod, node).values()
    assert math.floor(score / 10 + 0.5) == original
    mean, share = min((4000 - free + demand) / 4000, 1), deviation / 4000
    assert score == pytest.approx(100 * (1 - (mean + math.sqrt(share)) / 2))


def test_the_busier_resource_counts() -> None:
    node = loaded_node(free_cpu=4000, free_memory=8 * GIB)
    assert run_score(SafeBalance(), make_pod(), node) == {"node": 75}


def test_nodes_without_measurements_get_the_mean() -> None:
    nodes = loaded_node("a", free_cpu=4000), loaded_node("new"), loaded_node("b", free_cpu=0)
    assert run_score(SafeBalance(), make_pod(), *nodes) == {"a": 100, "new": 75, "b": 50}
