import pytest

from moorage.testing import make_pod, run_score
from services.scorer.plugins.load.load_variation_risk_balancing import LoadVariationRiskBalancing
from tests.annotated import loaded_node

POD = make_pod(requests={"cpu": "400m"})
GIB = 1024**3


@pytest.mark.parametrize(
    ("free", "deviation", "margin", "sensitivity", "score"),
    [  # millicores of 4000; 100 * (1 - (mean + min(margin * deviation ** (1/sensitivity), 1)) / 2)
        pytest.param(4000, 0, 1, 1, 95, id="idle: (0.1 + 0) / 2"),
        pytest.param(2400, 400, 1, 1, 70, id="(0.5 + 0.1) / 2"),
        pytest.param(2400, 400, 1, 2, 59, id="(0.5 + 0.3162) / 2"),
        pytest.param(2400, 400, 2, 1, 65, id="(0.5 + 0.2) / 2"),
        pytest.param(2400, 400, 20, 1, 25, id="(0.5 + 1) / 2"),
        pytest.param(2400, 400, 0, 1, 75, id="(0.5 + 0) / 2"),
        pytest.param(0, 4000, 1, 1, 0, id="full"),
        pytest.param(2390, 0, 1, 1, 75, id="74.875 is rounded"),
    ],
)
def test_low_and_steady_load_is_preferred(
    free: float, deviation: float, margin: float, sensitivity: float, score: float
) -> None:
    args = LoadVariationRiskBalancing.Args(
        safe_variance_margin=margin, safe_variance_sensitivity=sensitivity
    )
    node = loaded_node(free_cpu=free, std_cpu=deviation)
    assert run_score(LoadVariationRiskBalancing(args), POD, node) == {"node": score}


def test_the_riskier_resource_counts_and_one_is_enough() -> None:
    plugin = LoadVariationRiskBalancing()
    both = loaded_node("both", free_cpu=4000, free_memory=8 * GIB)
    memory = loaded_node("memory", free_memory=8 * GIB, std_memory=4 * GIB)
    assert run_score(plugin, POD, both, memory) == {"both": 75, "memory": 63}


def test_nodes_without_measurements_get_the_mean() -> None:
    nodes = loaded_node("a", free_cpu=4000), loaded_node("new"), loaded_node("b", free_cpu=0)
    scores = run_score(LoadVariationRiskBalancing(), POD, *nodes)
    assert scores == {"a": 95, "new": 72.5, "b": 50}
