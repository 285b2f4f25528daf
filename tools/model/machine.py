"""Cycles, claims, binds and failover in any order, with faults; the rules hold after each step.

Everything between a call of kube-scheduler and the Binding is the real code, but for the network.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.cycle import BindCall, CallFailedError, Cycle, NodeSet
from moorage.models import Pod, encode
from tools.model import rules
from tools.model.api import KINDS, Api
from tools.model.binder import BinderProcess
from tools.model.clock import VirtualLoop
from tools.model.gateway import ModelGateway
from tools.model.rules import BrokenError, hold

SECONDS = 0.5
"""What a call may take; those that cannot succeed take all of it."""

CLAIM_TTL = 121.0
"""Longer than claims last."""

TTL = 1000.0
"""Longer than claims and assumed pods last."""

FAULTS = ("ok", "ok", "ok", "lost", "refused", "held", "dark")
"""The answer of a Binding gets lost; it does not arrive; it waits; the pod cannot be read too."""

NAMED = ("", "", "", "", "n0", "n1", "never")
"""The node that a bind names if it is not the one that was chosen."""

gateways = st.sampled_from((0, 1))
schedulers = st.sampled_from((0, 0, 0, 1))
picks = st.integers(0, 5)
kinds = st.sampled_from(KINDS)
faults = st.sampled_from(FAULTS)


class Failover(RuleBasedStateMachine):
    """Two gateways, one binder, two kube-schedulers of the same pods, and the truth.

    Attributes:
        steps: That all machines of this process have made.
        found: How many until a rule was broken first.
        chosen: What a kube-scheduler has decided and not sent: nodes by uid and scheduler.
        behind: Pods whose bind has failed; kube-scheduler does not see that they may be bound.
        calls: Binds under way, with the numbers of gateway and scheduler, and the pod's uid.
    """

    steps = found = 0

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.api = Api()
        self.clock = 0.0
        self.chosen: dict[tuple[str, int], str] = {}
        self.behind: set[str] = set()
        self.calls: dict[asyncio.Task[list[str]], tuple[int, int, str]] = {}
        self.generations: dict[int, int] = {}
        self.is_broken = False
        self.gateways: list[ModelGateway] = []

    @initialize()
    def start(self) -> None:
        for name in ("n0", "n1", "n2"):
            self.api.add_node(name)
        self.run(self.make())

    # ---- the cluster

    @rule(kind=kinds)
    def create_pod(self, kind: str) -> None:
        self.add_pod(kind)

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

    @rule(at=gateways, pick=picks, node=picks, by=schedulers)
    def schedule(self, at: int, pick: int, node: int, by: int = 0) -> None:
        waiting = [pod for _, pod in sorted(self.api.pods.items()) if self.waits(pod, by)]
        if waiting:
            self.run(self.filter(at, waiting[pick % len(waiting)], node, by))

    @rule(at=gateways, pick=picks, fault=faults, to=st.sampled_from(NAMED))
    def bind(self, at: int, pick: int, fault: str, to: str = "") -> None:
        if self.chosen:
            uid, by = sorted(self.chosen)[pick % len(self.chosen)]
            self.chosen[uid, by] = to or self.chosen[uid, by]
            self.run(self.settled(self.begin_bind(at, uid, fault, by)))

    @rule(kind=kinds, at=gateways, node=picks, fault=faults, seen=st.booleans())
    def place(self, kind: str, at: int, node: int, fault: str, seen: bool) -> None:
        """Create, filter and bind at once; the watch may be late."""
        pod = self.add_pod(kind)
        if seen:
            self.see_all(at)
        self.run(self.filter(at, pod, node))
        if (pod.uid, 0) in self.chosen:
            self.run(self.settled(self.begin_bind(at, pod.uid, fault)))

    @rule(kind=kinds, at=gateways, node=picks, fault=faults, seen=st.booleans())
    def place_two(self, kind: str, at: int, node: int, fault: str, seen: bool) -> None:
        """Filter two pods, then bind both: kube-scheduler's binds run beside its cycles."""
        pods = [self.add_pod(kind), self.add_pod(kind)]
        if seen:
            self.see_all(at)
        for pod in pods:
            self.run(self.filter(at, pod, node))
        chosen = [pod.uid for pod in pods if (pod.uid, 0) in self.chosen]
        self.run(self.settled(*(self.begin_bind(at, uid, fault) for uid in chosen)))

    @rule(kind=kinds, at=gateways, nodes=st.tuples(picks, picks, picks), fault=faults)
    def two_schedulers(self, kind: str, at: int, nodes: tuple[int, int, int], fault: str) -> None:
        """Have both try a pod while another one is placed, then bind what the first has chosen."""
        pod, other = self.add_pod(kind), self.add_pod(kind)
        self.see_all(at)
        for tried, node, by in ((pod, nodes[0], 0), (other, nodes[1], 1), (pod, nodes[2], 1)):
            self.run(self.filter(at, tried, node, by))
            if tried is other and (other.uid, 1) in self.chosen:
                self.run(self.settled(self.begin_bind(at, other.uid, "ok", 1)))
        if (pod.uid, 0) in self.chosen:
            self.run(self.settled(self.begin_bind(at, pod.uid, fault)))

    @rule()
    def kube_scheduler_sees_pods(self) -> None:
        self.behind.clear()

    # ---- faults

    @rule(at=gateways, count=st.integers(1, 4))
    def watch(self, at: int, count: int) -> None:
        self.run(self.now(self.gateways[at].view.watch, count))

    @rule(at=gateways)
    def watch_lost(self, at: int) -> None:
        self.run(self.now(self.gateways[at].view.relist))

    @rule(seconds=st.sampled_from((0.01, 0.1, 1.0)))
    def time_passes(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule(at=gateways)
    def claims_expire(self, at: int) -> None:
        """Claims whose binds do not come are dropped; assumed pods wait for the watch."""
        self.clock += CLAIM_TTL
        self.gateways[at].state.expire(heard=0.0)

    @precondition(lambda self: bool(self.api.held))
    @rule()
    def held_answers_arrive(self) -> None:
        self.api.let_go()
        self.run(asyncio.sleep(0.01))

    @rule(at=gateways, arrive=st.booleans())
    def take_over(self, at: int, arrive: bool) -> None:
        """Begin a term; binds that are held back end while it waits for them, or time out."""
        self.run(self.begin(at, arrive=arrive))

    @rule(at=gateways, pick=picks, fault=faults)
    def take_over_amid_a_bind(self, at: int, pick: int, fault: str) -> None:
        """The other gateway sends a bind while a term begins."""
        if self.chosen:
            uid, by = sorted(self.chosen)[pick % len(self.chosen)]
            self.begin_bind(1 - at, uid, fault, by)
        self.run(self.begin(at, arrive=True))

    @rule(at=gateways)
    def restart(self, at: int) -> None:
        """Kill a gateway: it forgets all, and its calls end without an answer."""
        for call in [call for call, (number, _, _) in self.calls.items() if number == at]:
            call.cancel()
        self.generations.pop(at, None)
        self.run(self.replace(at))

    @rule(at=gateways)
    def restart_binder(self, at: int) -> None:
        """Kill the binder; the newest term's gateway, or one that takes over, finds the new one."""
        newest = max(self.gateways, key=lambda gateway: gateway.term.epoch)
        self.run(self.replace_binder(newest))
        if newest is not self.gateways[at]:
            self.run(self.begin(at, arrive=True))

    # ---- what always holds

    @invariant()
    def rules_of_the_cluster(self) -> None:
        Failover.steps += 1
        for each in rules.OF_API:
            self.hold(each.__name__, each(self.api))
        for gateway in self.gateways:
            fence = self.process.binder.fence
            counts = rules.what_is_bound_counts(gateway, self.api, fence)
            self.hold("what is bound counts", counts)
        for call in [call for call in self.calls if call.done()]:
            del self.calls[call]
            if not call.cancelled():
                self.hold("a bind is reported as it is", iter(call.result()))

    @invariant()
    def rules_of_the_view(self) -> None:
        for at, gateway in enumerate(self.gateways):
            differences: list[str] = []
            self.run(self.compare(gateway, differences))
            self.hold("the replica equals the state", iter(differences))
            before, now = self.generations.get(at, 0), gateway.state.generation
            fell = [f"from {before} to {now}"] if now < before else []
            self.hold("generations grow", iter(fell))
            self.generations[at] = now

    def teardown(self) -> None:
        if self.gateways:
            self.run(self.quiet())
        self.loop.run(self.loop.shutdown_asyncgens())
        self.loop.close()

    # ---- helpers

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        self.loop.run(work)

    def hold(self, name: str, problems: Iterator[str]) -> None:
        try:
            hold(name, problems)
        except BrokenError:
            self.is_broken = True
            Failover.found = Failover.found or Failover.steps
            raise

    async def now(self, call: Callable[..., None], *args: Any) -> None:
        call(*args)

    async def compare(self, gateway: ModelGateway, differences: list[str]) -> None:
        """Compare the replica with the state, before a call that ends now can change the state."""
        await gateway.phase.follow()
        differences.extend(rules.the_replica_equals_the_state(gateway))

    def see_all(self, at: int) -> None:
        self.run(self.now(self.gateways[at].view.watch, len(self.api.events)))

    def add_pod(self, kind: str) -> Pod:
        return self.api.add_pod(f"p{len(self.api.created)}", kind)

    def waits(self, pod: Pod, scheduler: int) -> bool:
        """Whether a kube-scheduler would schedule a pod."""
        under_way = [whose for call, (_, *whose) in self.calls.items() if not call.done()]
        if [scheduler, pod.uid] in under_way:
            return False
        return not pod.spec.node_name or pod.uid in self.behind

    async def make(self) -> None:
        self.process = BinderProcess(self.api)
        self.gateways = [self.gateway() for _ in range(2)]
        await self.begin(0, arrive=True)

    def gateway(self) -> ModelGateway:
        return ModelGateway(self.api, self.process, lambda: self.clock)

    async def replace(self, at: int) -> None:
        self.gateways[at] = self.gateway()
        await self.begin(at, arrive=True)

    async def replace_binder(self, newest: ModelGateway) -> None:
        self.process.restart()
        if newest.term.is_active:
            await newest.fence_others()

    async def filter(self, at: int, pod: Pod, pick: int, by: int = 0) -> None:
        """Have a kube-scheduler filter a pod, as it was created, and choose a node."""
        self.chosen.pop((pod.uid, by), None)
        created = self.api.created[pod.uid]
        nodes, end = NodeSet(sorted(self.api.nodes)), soon()
        cycle = Cycle(pod=created, pod_json=encode(created), nodes=nodes, deadline=end)
        try:
            await self.gateways[at].runner.filter(cycle)
        except CallFailedError:
            return
        if names := cycle.feasible.names:
            self.chosen[pod.uid, by] = names[pick % len(names)]

    def begin_bind(self, at: int, uid: str, fault: str, by: int = 0) -> asyncio.Task[list[str]]:
        self.api.faults[uid] = fault
        call = self.loop.create_task(self.send_bind(at, uid, self.chosen.pop((uid, by))))
        self.calls[call] = at, by, uid
        return call

    async def send_bind(self, at: int, uid: str, node: str) -> list[str]:
        """Bind, and return how the answer differs from what is."""
        pod = self.api.created[uid]
        call = BindCall(namespace="default", name=pod.name, uid=uid, node=node, deadline=soon())
        self.behind.add(uid)  # until there is an answer, and for longer if it is an error
        try:
            await self.gateways[at].runner.bind(call)
        except CallFailedError:
            return []
        finally:
            self.api.dark.discard(uid)
        self.behind.discard(uid)
        bound = self.api.pods.get(uid)
        if bound is None or bound.spec.node_name == node:
            return []
        return [f"{pod.name} on {node}, and is on {bound.spec.node_name or 'no node'}"]

    async def settled(self, *calls: asyncio.Task[list[str]]) -> None:
        """Wait for binds, or until they wait for the API server."""
        while not all(call.done() for call in calls) and not self.api.held:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def begin(self, at: int, *, arrive: bool) -> None:
        gateway = self.gateways[at]
        epoch = max(self.process.binder.fence.epoch, gateway.term.epoch) + 1
        begun = asyncio.create_task(gateway.begin(epoch))
        await asyncio.sleep(0.005)
        if arrive:
            self.api.let_go()
        await begun
        self.api.fenced = max(self.api.fenced, gateway.term.epoch)

    async def quiet(self) -> None:
        """End everything; then each view must be the truth."""
        self.api.let_go()
        if self.calls:
            await asyncio.wait(self.calls)
        await self.process.binder.drain()
        self.clock += TTL
        for gateway in self.gateways:
            gateway.view.watch(len(self.api.events))
            gateway.state.expire()
            if not self.is_broken:
                truth = rules.in_the_end_the_view_is_the_truth(gateway, self.api)
                self.hold("in the end the view is the truth", truth)


def soon() -> float:
    return asyncio.get_running_loop().time() + SECONDS
