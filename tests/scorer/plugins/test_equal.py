from moorage.testing import make_node, make_pod, run_score
from services.scorer.plugins.equal import Equal


def test_all_nodes_are_the_same() -> None:
    busy = make_pod("busy", node="a", requests={"cpu": "4"})
    scores = run_score(Equal(), make_pod(), make_node("a"), make_node("b"), pods=[busy])
    assert scores == {"a": 1, "b": 1}
