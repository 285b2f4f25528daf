import pytest

from moorage import Rejection
from moorage.in_tree.filters.node_name import NodeName
from moorage.testing import make_node, make_pod, run_filter

OTHER = Rejection("node(s) didn't match the requested node name", unresolvable=True)


@pytest.mark.parametrize(
    ("wanted", "verdicts"),
    [
        pytest.param("", {"n1": None, "n2": None}, id="any"),
        pytest.param("n1", {"n1": None, "n2": OTHER}, id="one of them"),
        pytest.param("n", {"n1": OTHER, "n2": OTHER}, id="none of them"),
    ],
)
def test_a_pod_that_names_its_node_gets_no_other(
    wanted: str, verdicts: dict[str, Rejection | None]
) -> None:
    pod = make_pod(node=wanted)
    assert run_filter(NodeName(), pod, make_node("n1"), make_node("n2")) == verdicts
