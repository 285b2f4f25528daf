import pytest

from moorage import Rejection
from moorage.testing import make_node, make_pod, run_filter
from services.filter.plugins.node_group import NodeGroup

NO_LABEL = Rejection("node does not have required label", unresolvable=True)
OTHER = Rejection("nodeGroup of pod and node don't match", unresolvable=True)


@pytest.mark.parametrize(
    ("pod_labels", "node_labels", "verdict"),
    [
        pytest.param({}, {}, None, id="no group, anywhere"),
        pytest.param({}, {"nodeGroup": "1"}, None, id="no group, onto a group's node"),
        pytest.param({"nodeGroup": "1"}, {}, NO_LABEL, id="node without group"),
        pytest.param({"nodeGroup": "1"}, {"nodeGroup": "1"}, None, id="same group"),
        pytest.param({"nodeGroup": "1"}, {"nodeGroup": "2"}, OTHER, id="other group"),
        pytest.param({"nodeGroup": "1"}, {"nodeGroup": "01"}, OTHER, id="compared as text"),
        pytest.param({"nodeGroup": ""}, {"nodeGroup": ""}, None, id="the empty group is a group"),
        pytest.param({"nodeGroup": ""}, {}, NO_LABEL, id="the empty group is not no group"),
        pytest.param({"nodeGroup": "1"}, {"nodeGroup": ""}, OTHER, id="nor is it any group"),
    ],
)
def test_pods_of_a_group_stay_on_its_nodes(
    pod_labels: dict[str, str], node_labels: dict[str, str], verdict: Rejection | None
) -> None:
    node = make_node("n1", labels=node_labels)
    assert run_filter(NodeGroup(), make_pod(labels=pod_labels), node) == {"n1": verdict}


def test_the_label_can_be_another() -> None:
    plugin = NodeGroup(NodeGroup.Args(label="example.com/team"))
    pod = make_pod(labels={"example.com/team": "red", "nodeGroup": "1"})
    nodes = make_node("n1", labels={"example.com/team": "red"}), make_node("n2")
    assert run_filter(plugin, pod, *nodes) == {"n1": None, "n2": NO_LABEL}
