import pytest

from moorage import Pod
from moorage.measurements.risk import Limits
from moorage.models import Container, Resources
from moorage.testing import make_node, make_nodes, make_pod


def container(requests: str = "0", limit: str = "0", memory: str = "0") -> Container:
    return Container(
        resources=Resources(requests={"cpu": requests}, limits={"cpu": limit, "memory": memory})
    )


@pytest.mark.parametrize(
    ("pod", "limits"),
    [
        pytest.param(make_pod(), (0, 0), id="nothing"),
        pytest.param(
            make_pod(containers=[container(limit="1", memory="1Ki"), container(limit="500m")]),
            (1500, 1024),
            id="containers together",
        ),
        pytest.param(
            make_pod(
                containers=[container(limit="1")],
                init_containers=[container(limit="3"), container(limit="2")],
            ),
            (3000, 0),
            id="the largest step of initialisation",
        ),
        pytest.param(
            make_pod(containers=[container(limit="1")], overhead={"cpu": "100m"}),
            (1100, 0),
            id="overhead",
        ),
        pytest.param(
            make_pod(containers=[container(requests="2")]), (2000, 0), id="at least the requests"
        ),
    ],
)
def test_limits_of_a_pod(pod: Pod, limits: tuple[int, int]) -> None:
    assert Limits().of_pod(pod) == limits


def test_limits_of_nodes_are_those_of_their_pods_also_when_these_change() -> None:
    def pod(name: str, node: str, limit: str) -> Pod:
        return make_pod(name, node=node, containers=[container(limit=limit, memory="1Ki")])

    nodes = make_node("a"), make_node("b")
    limits = Limits()
    before = make_nodes(*nodes, pods=[pod("p", "a", "1"), pod("q", "a", "2"), pod("r", "b", "3")])
    assert [each.tolist() for each in limits.of_nodes(before)] == [[3000, 3000], [2048, 1024]]
    after = make_nodes(*nodes, pods=[pod("p", "a", "5"), pod("r", "b", "3")])
    assert [each.tolist() for each in limits.of_nodes(after)] == [[5000, 3000], [1024, 1024]]
