import pytest
from hypothesis import given

from moorage import Pod, Rejection
from moorage.in_tree.filters.taint_toleration import TaintToleration
from moorage.models import NodeManifest, Taint, Toleration
from moorage.rules.taints import tolerates
from moorage.testing import make_node, make_pod, run_filter
from tests.clusters import Cluster, clusters, incoming_pods

TAINTED = Rejection("node(s) had untolerated taint(s)", unresolvable=True)


@pytest.mark.parametrize(
    ("effect", "verdict"),
    [("NoSchedule", TAINTED), ("NoExecute", TAINTED), ("PreferNoSchedule", None)],
)
def test_taints_of_the_hard_effects_keep_pods_off(effect: str, verdict: Rejection | None) -> None:
    node = make_node("n1", taints=[Taint(key="gpu", effect=effect)])
    assert run_filter(TaintToleration(), make_pod(), node) == {"n1": verdict}


def test_every_taint_of_a_node_must_be_tolerated() -> None:
    gpu, spot = (Taint(key=key, value="yes", effect="NoSchedule") for key in ("gpu", "spot"))
    pod = make_pod(tolerations=[Toleration(key="gpu", value="yes")])
    nodes = make_node("one", taints=[gpu]), make_node("both", taints=[gpu, spot]), make_node("none")
    verdicts = run_filter(TaintToleration(), pod, *nodes)
    assert verdicts == {"one": None, "both": TAINTED, "none": None}


@given(clusters(), incoming_pods())
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod) -> None:
    def verdict(node: NodeManifest) -> Rejection | None:
        for taint in node.spec.taints:
            covered = any(tolerates(toleration, taint) for toleration in pod.spec.tolerations)
            if taint.effect != "PreferNoSchedule" and not covered:
                return TAINTED
        return None

    expected = {node.name: verdict(node) for node in cluster.nodes}
    assert run_filter(TaintToleration(), pod, *cluster.nodes) == expected
