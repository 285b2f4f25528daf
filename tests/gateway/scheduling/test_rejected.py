"""Pods that were rejected everywhere are tried again when kube-scheduler would not do it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from gateway.cluster.state import ClusterState
from gateway.cycle import Cycle, NodeSet
from gateway.cycle.answers import PhaseVerdicts
from gateway.cycle.decision import Decision, FilterRecord, PluginRecord
from gateway.cycle.nodes import RowIndex
from gateway.policy.policy import PolicyHolder
from gateway.scheduling.rejected import CLUSTER_CHANGED, POLICY_CHANGED, RejectedPods
from moorage import FilterPlugin, Node, Pod, Rejection
from moorage.models import encode
from moorage.testing import make_node, make_pod
from moorage.v1 import types_pb2 as pb
from moorage_host.policy import parse
from tools.inprocess.gateway import Options, plane, policy_of
from tools.waiting import until

ASKED = "moorage.io/RetryRequested"

CHANGED = {("Hot", CLUSTER_CHANGED): ["p"]}

POLICY = policy_of("{filter: {enabled: [{name: Hot}]}}")


def _plugin(name: str) -> pb.Plugin:
    return pb.Plugin(
        name=name, extension_points=["Filter"], depends_on=pb.SCOPE_NODE, reads_placements=True
    )


@dataclass
class World:
    """A cluster of two nodes, and pods that the plugin Hot rejects on them."""

    now: float = 0.0
    state: ClusterState = field(default_factory=ClusterState)
    attempts: int = 0

    def __post_init__(self) -> None:
        self.policy = PolicyHolder(parse(POLICY, "policy"))
        for kind in ("score", "bind"):
            self.policy.learn(kind, [])
        self.policy.learn("filter", [_plugin("Hot"), _plugin("Cold")])
        self.pods = RejectedPods(self.state, self.policy, 2, clock=lambda: self.now)
        self.policy.listeners.append(self.pods.follow)
        self.heat("n1")
        self.heat("n2")

    def heat(self, name: str, degrees: float = 90) -> None:
        self.state.set_node(make_node(name, annotations={"temperature": f"{degrees}"}))

    def reject(self, name: str = "p", nodes: tuple[str, ...] = ("n1",), unknown: int = 0) -> None:
        """Reject a pod on nodes, by the state now."""
        pod = make_pod(name)
        if self.state.pods.get(pod.uid) is None:
            self.state.set_pod(pod)
        self.judge(pod, nodes, unknown=unknown)

    def judge(
        self, pod: Pod, nodes: tuple[str, ...], *, feasible: int = 0, unknown: int = 0
    ) -> None:
        self.attempts += 1
        cycle = Cycle(pod=pod, pod_json=encode(pod), nodes=NodeSet(nodes), deadline=1e9)
        cycle.profile = "moorage"
        cycle.start = self.now
        rows = RowIndex(self.state).find(cycle.nodes)
        cycle.verdicts = PhaseVerdicts(bitmap=rows.bitmap, codes=np.zeros(rows.count, np.uint16))
        cycle.decision = Decision(
            namespace=pod.namespace,
            pod=pod.name,
            uid=pod.uid,
            attempt=self.attempts,
            time=datetime.now(UTC),
            profile="moorage",
            generation=self.state.generation,
            filter=FilterRecord(
                nodes=len(nodes),
                feasible=feasible,
                seconds=0,
                unknown_nodes=unknown,
                plugins=[PluginRecord(plugin="Hot", seconds=0, rejected=len(nodes) - feasible)],
            ),
        )
        self.pods.note(cycle)

    def take(self) -> dict[tuple[str, str], list[str]]:
        return {wish: [pod.name for pod in pods] for wish, pods in self.pods.take().items()}

    def woken(self, seconds: float) -> list[tuple[float, dict[tuple[str, str], list[str]]]]:
        """Look every second; return when pods were to be woken."""
        found = []
        for _ in range(int(seconds)):
            self.now += 1
            if taken := self.take():
                found.append((self.now, taken))
        return found


def test_a_pod_is_tried_again_if_its_nodes_change_and_kube_scheduler_does_not_try_it() -> None:
    world = World()
    world.reject()
    assert world.woken(30) == []
    world.heat("n1", 20)
    ((when, what),) = world.woken(300)
    assert what == CHANGED
    assert when <= 35


def test_kube_scheduler_has_its_backoff_to_try_a_pod_itself() -> None:
    world = World()
    for _ in range(5):  # the fifth waits for 10 s
        world.reject()
    world.heat("n1", 20)
    ((when, _),) = world.woken(300)
    assert 10 <= when <= 14


def test_a_pod_that_kube_scheduler_tries_in_time_is_left_alone() -> None:
    world = World()
    world.reject()
    for degrees in range(100):
        world.heat("n1", degrees)
        assert world.woken(1) == []
        world.reject()
    assert world.woken(60) == []


def test_changes_of_nodes_that_were_not_judged_wake_nobody() -> None:
    world = World()
    world.reject(nodes=("n1",))
    world.heat("n2", 20)
    world.state.set_pod(make_pod("other", node="n2"))
    assert world.woken(60) == []
    world.state.set_pod(make_pod("neighbour", node="n1"))
    assert len(world.woken(60)) == 1
    world = World()
    world.reject(nodes=("n1", "n3"), unknown=1)
    assert world.woken(30) == []
    world.heat("n3", 20)
    assert [what for _, what in world.woken(60)] == [CHANGED]


def test_nodes_that_change_all_the_time_do_not_make_a_hot_loop() -> None:
    world, times = World(), []
    world.reject()
    for degrees in range(600):
        world.heat("n1", degrees)
        for when, _ in world.woken(1):
            times.append(when)
            world.reject()  # what the write brings about
    pauses = np.diff(times)
    assert len(times) < 20
    assert (pauses[-5:] >= 60).all()


def test_a_changed_policy_wakes_the_pods_whose_plugins_it_concerns() -> None:
    world = World()
    world.reject()
    same = parse(POLICY.replace("scoreScale: 100", "scoreScale: 10"), "policy")
    world.policy.activate(same, world.policy.resolve(same))
    assert world.take() == {}
    other = parse(POLICY.replace("Hot", "Cold"), "policy")
    world.policy.activate(other, world.policy.resolve(other))
    assert world.pods.changed.is_set()
    assert world.take() == {("Hot", POLICY_CHANGED): ["p"]}
    assert world.woken(60) == []


def test_what_a_plugin_asks_for_during_a_cycle_counts_for_its_pod() -> None:
    world = World()
    world.now = 5.0
    world.pods.ask("Hot", "it is winter")  # in the cycle that begins at 5.0, before its verdict
    world.reject()
    assert world.take() == {("Hot", "it is winter"): ["p"]}
    assert world.take() == {}
    world.now = 6.0
    world.reject()
    assert world.take() == {}


def test_a_plugin_may_ask_for_the_pods_of_one_namespace_alone() -> None:
    world = World()
    world.now = 5.0
    world.reject()
    world.pods.ask("Hot", "it is winter", "theirs")
    assert world.take() == {}
    world.pods.ask("Hot", "it is winter", "default")
    assert world.take() == {("Hot", "it is winter"): ["p"]}
    world.reject()  # in a cycle that had begun
    assert world.take() == {("Hot", "it is winter"): ["p"]}


def test_pods_that_wait_no_longer_are_left_alone() -> None:
    world = World()
    world.reject("bound")
    world.reject("gone")
    world.state.set_pod(make_pod("bound", node="n1"))
    world.state.drop_pod(make_pod("gone").uid)
    world.pods.ask("Hot", "")
    assert world.take() == {}
    world.reject("fits")
    world.judge(make_pod("fits"), ("n1",), feasible=1)
    world.pods.ask("Hot", "")
    assert world.take() == {}


def test_pods_that_could_not_be_woken_are_taken_again() -> None:
    world = World()
    world.reject()
    world.pods.ask("Hot", "winter")
    ((wish, pods),) = world.pods.take().items()
    world.pods.put_back(wish, pods)
    assert world.take() == {wish: ["p"]}
    world = World()
    world.judge(make_pod("late"), ("n1",))  # the watch has not shown it
    world.pods.ask("Hot", "")
    assert world.take() == {("Hot", ""): ["late"]}


class Hot(FilterPlugin):
    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if float(node.labels.get("temperature", "90")) > 80:
            return Rejection("node is too hot")
        return None


async def test_the_binder_wakes_a_pod_that_was_rejected_by_an_old_view(tmp_path: Path) -> None:
    options: Options = {"policy": POLICY, "nodes": ("n1",), "binder": True, "retry_interval": 1.0}
    async with plane(tmp_path, Hot, **options) as process:
        created = process.api.pod("p", schedulerName="moorage")
        answer = await process.filter(created, "n1")
        assert not answer["NodeNames"]
        process.api.label("/api/v1/nodes/n1", temperature="20")

        def conditions() -> list[dict[str, str]]:
            status = process.api.read_pod("p").get("status", {})
            return [c for c in status.get("conditions") or [] if c["type"] == ASKED]

        await until(lambda: bool(conditions()), 30)
        (condition,) = conditions()
        assert (condition["reason"], condition["message"]) == ("Hot", CLUSTER_CHANGED)
        assert (await process.filter(created, "n1"))["NodeNames"] == ["n1"]
        assert process.sample("moorage_retried_pods_total", plugin="Hot", outcome="written")


def test_pods_that_a_gateway_before_may_have_rejected_are_tried_again_once() -> None:
    world = World()
    for name in ("left", "tried"):
        world.state.set_pod(make_pod(name))
    world.state.set_pod(make_pod("gated", gates=["example.com/wait"]))
    world.state.set_pod(make_pod("foreign", scheduler_name="other"))
    world.state.set_pod(make_pod("placed", node="n1"))
    assert not world.pods.take()
    world.now = 5.0
    pod = world.state.pods.get(make_pod("tried").uid)
    assert pod is not None
    world.judge(pod, ("n1",), feasible=1)
    world.now = 11.0
    assert not world.pods.take()
    world.now = 13.0
    ((wish, found),) = world.pods.take().items()
    assert wish == ("Moorage", CLUSTER_CHANGED)
    assert [each.name for each in found] == ["left"]
    world.heat("n1", 20)
    world.now = 1000.0
    assert not world.pods.take()
