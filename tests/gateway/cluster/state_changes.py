"""All that can happen to the cluster state, as rules for Hypothesis."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from gateway.cluster.state import ClusterState
from moorage.models import Pod
from moorage.testing import make_node, make_pod

NAMES = st.sampled_from(["a", "b", "c", "d"])
CPUS = st.sampled_from(["100m", "1", "2"])


def place(name: str, node: str = "", cpu: str = "100m") -> Pod:
    return make_pod(name, node=node, requests={"cpu": cpu})


class StateChanges(RuleBasedStateMachine):
    state: ClusterState

    @rule(name=NAMES, cpu=CPUS)
    def node(self, name: str, cpu: str) -> None:
        self.state.set_node(make_node(name, allocatable={"cpu": cpu}))

    @rule(name=NAMES)
    def node_gone(self, name: str) -> None:
        self.state.drop_node(name)

    @rule(name=NAMES, node=st.sampled_from(["", "a", "b", "c", "d"]), cpu=CPUS)
    def pod(self, name: str, node: str, cpu: str) -> None:
        self.state.set_pod(place(name, node, cpu))

    @rule(name=NAMES)
    def pod_gone(self, name: str) -> None:
        self.state.drop_pod(place(name).uid)

    @rule(name=NAMES, node=NAMES)
    def assumed(self, name: str, node: str) -> None:
        self.state.assume(place(name), node)

    @rule(name=NAMES, node=NAMES)
    def claimed(self, name: str, node: str) -> None:
        self.state.claim(place(name), node)

    @rule(name=NAMES)
    def released(self, name: str) -> None:
        self.state.release(place(name).uid)

    @rule(name=NAMES)
    def confirmed(self, name: str) -> None:
        self.state.confirm(place(name).uid)

    @rule(name=NAMES)
    def forgotten(self, name: str) -> None:
        self.state.forget(place(name).uid)
