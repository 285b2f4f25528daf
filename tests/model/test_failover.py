"""Cycles, claims, binds and failover in any order, with faults: no rule is ever broken.

The oracle is an API server of a few lines (`tests.model.api`). Everything between a call of
kube-scheduler and the Binding is the real code, but for the network. `MOORAGE_MODEL_STEPS=2000`
runs longer.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.calls import BindCall, CallFailedError, CycleRequest, NodeSet
from moorage import Binding, BindPlugin
from moorage.models import Pod, encode
from moorage_host.plugins.registry import Registry
from services.binder.binding.attempt import RetryLimits
from services.binder.binding.binder import Binder, BindLimits
from services.binder.binding.policies import Policies
from services.binder.binding.written import WrittenLimits
from services.binder.snapshots import Snapshots
from tests.binder.world import Observed
from tests.model.api import KINDS, Api, Writes
from tests.model.gateway import ModelGateway

SECONDS = 0.12
"""What a call may take; those that cannot succeed take all of it."""

TTL = 1000.0
"""Longer than claims and assumed pods last."""

STEPS = int(os.environ.get("MOORAGE_MODEL_STEPS", "0"))
EXAMPLES, LENGTH = (max(STEPS // 50, 1), 50) if STEPS else (20, 30)

gateways = st.sampled_from((0, 1))
picks = st.integers(0, 5)
kinds = st.sampled_from(KINDS)
modes = st.sampled_from(("ok", "ok", "ok", "lost", "refused", "held", "dark"))


class Failover(RuleBasedStateMachine):
    """Two gateways, one binder, and the truth."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.api = Api()
        self.clock = 0.0
        self.chosen: dict[tuple[int, str], str] = {}
        self.binds: set[asyncio.Task[None]] = set()
        self.generations: dict[int, int] = {}
        self.count = 0

    @initialize()
    def start(self) -> None:
        for name in ("n0", "n1", "n2"):
            self.api.add_node(name)
        self.binder = self.run(self.make_binder())
        self.gateways = [self.make_gateway() for _ in range(2)]
        self.run(self.begin(0))

    # ---- the cluster

    @rule(kind=kinds)
    def create_pod(self, kind: str) -> None:
        self.count += 1
        self.api.add_pod(f"p{self.count}", kind)

    @rule(pick=picks)
    def delete_pod(self, pick: int) -> None:
        if self.api.pods:
            self.api.remove_pod(sorted(self.api.pods)[pick % len(self.api.pods)])

    @rule(pick=picks)
    def drain_node(self, pick: int) -> None:
        if len(self.api.nodes) > 1:
            self.api.remove_node(sorted(self.api.nodes)[pick % len(self.api.nodes)])

    @rule()
    def create_node(self) -> None:
        missing = {"n0", "n1", "n2", "n3"} - set(self.api.nodes)
        if missing:
            self.api.add_node(min(missing))

    # ---- kube-scheduler

    @rule(at=gateways, pick=picks, node=picks)
    def schedule(self, at: int, pick: int, node: int) -> None:
        pod = self.waiting(pick)
        if pod is not None:
            self.run(self.filter(at, pod, node))

    @rule(at=gateways, pick=picks, mode=modes)
    def bind(self, at: int, pick: int, mode: str) -> None:
        asked = [uid for gateway, uid in self.chosen if gateway == at]
        if not asked:
            return
        uid = asked[pick % len(asked)]
        self.api.mode = mode
        self.api.dark = False
        task = self.loop.create_task(self.send_bind(at, uid, self.chosen.pop((at, uid))))
        self.binds.add(task)
        self.run(self.settle(task))

    @rule(kind=kinds, at=gateways, node=picks, mode=modes)
    def place(self, kind: str, at: int, node: int, mode: str) -> None:
        """Create, filter and bind at once; the watch may be late."""
        self.create_pod(kind)
        uid = f"uid-p{self.count}"
        if kind == "claims":
            self.gateways[at].view.watch(len(self.api.events))
        self.run(self.filter(at, self.api.pods[uid], node))
        if (at, uid) in self.chosen:
            self.api.mode, self.api.dark = mode, False
            task = self.loop.create_task(self.send_bind(at, uid, self.chosen.pop((at, uid))))
            self.binds.add(task)
            self.run(self.settle(task))

    # ---- faults

    @rule(at=gateways, count=st.integers(1, 4))
    def watch(self, at: int, count: int) -> None:
        self.gateways[at].view.watch(count)

    @rule(at=gateways)
    def watch_lost(self, at: int) -> None:
        self.gateways[at].view.relist()

    @precondition(lambda self: bool(self.api.held))
    @rule()
    def slow_answers_arrive(self) -> None:
        self.api.let_go()
        self.run(asyncio.sleep(0.005))

    @rule(at=gateways)
    def take_over(self, at: int) -> None:
        self.run(self.begin(at))

    @rule(at=gateways)
    def restart(self, at: int) -> None:
        """Kill a gateway: it forgets all, and its calls end without an answer."""
        self.chosen = {key: node for key, node in self.chosen.items() if key[0] != at}
        self.gateways[at] = self.make_gateway()
        self.generations.pop(at, None)
        self.run(self.begin(at))

    # ---- what always holds

    @invariant()
    def no_rule_is_broken(self) -> None:
        bound = Counter(
            (pod.spec.scheduler_name, pod.spec.node_name)
            for pod in self.api.pods.values()
            if pod.spec.node_name
        )
        assert max(bound.values(), default=0) <= 1, bound
        assert len({write.uid for write in self.api.writes}) == len(self.api.writes)

    @invariant()
    def generations_grow(self) -> None:
        for at, gateway in enumerate(getattr(self, "gateways", ())):
            assert gateway.state.generation >= self.generations.get(at, 0)
            self.generations[at] = gateway.state.generation

    @invariant()
    def replicas_equal_the_state(self) -> None:
        for gateway in getattr(self, "gateways", ()):
            self.run(gateway.phase.follow())
            snapshot, state = gateway.phase.replica.snapshot, gateway.state
            assert {node.name for node in snapshot.nodes()} == set(state.rows.of)
            for node in snapshot.nodes():
                for pod in node.pods:
                    assert state.place_of(pod.uid) == node.name
            placed = sum(bool(state.rows.of.get(n) is not None) for n in state._place.values())
            assert snapshot.pod_count == placed

    def teardown(self) -> None:
        if hasattr(self, "gateways"):
            self.run(self.quiet())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    # ---- helpers

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def waiting(self, pick: int) -> Pod | None:
        pods = [pod for _, pod in sorted(self.api.pods.items()) if not pod.spec.node_name]
        return pods[pick % len(pods)] if pods else None

    def make_gateway(self) -> ModelGateway:
        return ModelGateway(self.api, self.binder, lambda: self.clock)

    async def make_binder(self) -> Binder:
        retries = RetryLimits(initial=0.001, maximum=0.01, reserve=0.02)
        limits = BindLimits(retries=retries, written=WrittenLimits(binds=2, seconds=300.0))
        return Binder(
            Writes(self.api, self.epoch_of),
            Policies(Registry(BindPlugin)),
            Snapshots(),
            limits=limits,
            observer=Observed(),
        )

    def epoch_of(self, binding: Binding) -> int:
        run = self.binder._newest[binding.uid]
        return int(run.guard.epoch)

    async def filter(self, at: int, pod: Pod, pick: int) -> None:
        request = CycleRequest(
            pod=pod, pod_json=encode(pod), nodes=NodeSet(sorted(self.api.nodes)), deadline=soon()
        )
        try:
            outcome = await self.gateways[at].runner.filter(request)
        except CallFailedError:
            return
        if names := outcome.feasible.names:
            self.chosen[at, pod.uid] = names[pick % len(names)]

    async def send_bind(self, at: int, uid: str, node: str) -> None:
        name = uid.removeprefix("uid-")
        call = BindCall(namespace="default", name=name, uid=uid, node=node, deadline=soon())
        try:
            await self.gateways[at].runner.bind(call)
        except CallFailedError:
            return
        pod = self.api.pods.get(uid)
        assert pod is None or pod.spec.node_name == node, "reported bound, and is not"

    async def settle(self, task: asyncio.Task[None]) -> None:
        """Wait for a bind, or until it waits for the API server."""
        while not task.done() and not self.api.held:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        if task.done():
            self.binds.discard(task)
            task.result()

    async def begin(self, at: int) -> None:
        """Let a gateway take over; answers that are held back come when it waits for them."""
        gateway = self.gateways[at]
        begun = asyncio.create_task(gateway.begin(max(self.binder.fence.epoch, 1) + 1))
        await asyncio.sleep(0.002)
        self.api.let_go()
        await begun
        self.api.fenced = max(self.api.fenced, gateway.term.epoch)

    async def quiet(self) -> None:
        """End everything; then each view must be the truth."""
        self.api.let_go()
        self.api.dark = False
        for task in list(self.binds):
            await task
        self.clock += TTL
        for gateway in self.gateways:
            gateway.view.watch(len(self.api.events))
            gateway.state.expire()
            for uid, pod in self.api.pods.items():
                assert gateway.state.place_of(uid) == pod.spec.node_name
            assert set(gateway.state.rows.of) == set(self.api.nodes)
            assert gateway.state.counts["pods"] == sum(
                bool(pod.spec.node_name) for pod in self.api.pods.values()
            )


def soon() -> float:
    return asyncio.get_running_loop().time() + SECONDS


Failover.TestCase.settings = settings(
    max_examples=EXAMPLES,
    print_blob=False,
    stateful_step_count=LENGTH,
    deadline=None,
    derandomize=not STEPS,
    database=None,
    suppress_health_check=list(HealthCheck),
)

TestFailover = Failover.TestCase
