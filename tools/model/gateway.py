"""A gateway of the real parts, with a replica of its own instead of services on the network."""

import itertools
import math
import time
from typing import Any, cast

import numpy as np
from prometheus_client import CollectorRegistry

from gateway.binding.binding import BindDispatcher
from gateway.binding.client import BinderClient
from gateway.binding.unknown import UnknownBinds, settled_binds
from gateway.cluster.cluster import Cluster
from gateway.cluster.rows import Rows
from gateway.cluster.state import ClusterState
from gateway.cycle import Cycle, NodeSet
from gateway.cycle.answers import PhaseScores, PhaseVerdicts
from gateway.cycle.cycle_states import CycleStates
from gateway.cycle.decision import FilterRecord, PluginRecord
from gateway.cycle.nodes import RowIndex
from gateway.decisions.log import DecisionLog
from gateway.decisions.nodes import KeptArrays
from gateway.leadership.barriers import BarrierAnswers, Barriers, StateRecovery
from gateway.leadership.leadership import TermLoop, TermMetrics
from gateway.leadership.term import Term
from gateway.policy.policy import PolicyHolder
from gateway.replicas.feed import StateFeed
from gateway.scheduling.metrics import CycleMetrics
from gateway.scheduling.queue import CycleQueue
from gateway.scheduling.rejected import RejectedPods
from gateway.scheduling.scheduler import Scheduler
from moorage.execution import PluginRejection
from moorage.models import encode
from moorage.plugin.cycle_state import ANNOTATION, KeptValue
from moorage.v1 import types_pb2 as pb
from moorage_host.kube import KubeClient
from moorage_host.plugins import Replica
from moorage_host.policy import parse
from moorage_host.rpc.state import apply_state
from services.binder.wire import barrier_to_proto
from tools.model.api import DEVICE, DEVICES, KINDS, Api, Reads
from tools.model.binder import BinderProcess

POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- schedulerName: claims
  plugins: {filter: {enabled: [{name: Claims}]}}
- schedulerName: checks
  plugins: {filter: {enabled: [{name: Checks}]}}
- schedulerName: devices
  plugins: {filter: {enabled: [{name: Devices}]}}
"""
TAKEN = "node(s) already had such a pod"


class OneOfAKind:
    """The filter phase: one pod of each profile on a node or device, by what the replica knows."""

    def __init__(self, state: ClusterState) -> None:
        self.replica = Replica()
        self._feed = StateFeed(state)
        self._state = state
        self._index = RowIndex(state)

    async def follow(self) -> int:
        """Apply what has changed to the replica; return the generation that it reaches."""
        kinds: frozenset[Any] = frozenset()
        if not self.replica.generation:
            for message in self._feed.full(pb.Policy(), kinds):
                await self._apply(message)
        reached, delta = self._feed.since(self.replica.generation, kinds)
        if delta is not None:
            await self._apply(delta)
        self.replica.generation = reached
        return reached

    async def judge(self, cycle: Cycle) -> PhaseVerdicts:
        reached = await self.follow()
        rows = self._index.find(cycle.nodes)
        free = [self._free(row, cycle) for row in rows.rows]
        codes = np.array([not each for each in free], np.uint16)
        name = cycle.profile.capitalize()
        chosen = {
            self._state.rows.names[row]: encode(each[0])
            for row, each in zip(rows.rows, free, strict=True)
            if each and cycle.profile == "devices"
        }
        claims = cycle.profile == "claims" or (
            cycle.profile == "devices" and cycle.pod.name[-1] in "02468"
        )
        verdicts = PhaseVerdicts(
            bitmap=rows.bitmap,
            codes=codes,
            reasons=[PluginRejection(name, TAKEN)],
            rows=rows,
            record=FilterRecord(
                nodes=0,
                feasible=0,
                seconds=0.0,
                plugins=[PluginRecord(plugin=name, seconds=0.0)],
                claimants=[name] if claims else [],
            ),
            generation=reached,
            kept={ANNOTATION + DEVICE: KeptValue(by_node=chosen)} if chosen else {},
        )
        verdicts.count()
        return verdicts

    def _free(self, row: int, cycle: Cycle) -> list[str]:
        """Return which places on a node the pods of the profile leave free."""
        taken = [
            pod.annotations.get(DEVICE, "")
            for pod in self.replica.snapshot.pods_at(row)
            if pod.spec.scheduler_name == cycle.profile and pod.uid != cycle.uid
        ]
        places = DEVICES if cycle.profile == "devices" else ("",)
        return [each for each in places if each not in taken]

    async def _apply(self, state: pb.State) -> None:
        await apply_state(self.replica, state)
        if not state.partial:
            self.replica.generation = state.generation


class View:
    """What the gateway knows of the API server: as many events as the test lets through."""

    def __init__(self, api: Api, clock: Any) -> None:
        self.api = api
        self.state = ClusterState(clock=clock)
        self.seen = 0
        self.as_of = -1.0

    def watch(self, count: int) -> None:
        """Let so many more events through."""
        for event in self.api.events[self.seen : self.seen + count]:
            self.seen += 1
            if event.node is not None:
                self.state.set_node(event.node)
            if event.pod is not None:
                self.state.set_pod(event.pod)
            if event.gone_node:
                self.state.drop_node(event.gone_node)
            if event.gone_pod:
                self.state.drop_pod(event.gone_pod)
        if self.seen == len(self.api.events):
            self.as_of = time.monotonic()

    def relist(self) -> None:
        """Read everything, as after a watch that was lost."""
        for name in list(self.state.rows.of):
            if name not in self.api.nodes:
                self.state.drop_node(name)
        for uid in self.state.known_pods():
            if uid not in self.api.pods:
                self.state.drop_pod(uid)
        for node in self.api.nodes.values():
            self.state.set_node(node)
        for pod in self.api.pods.values():
            self.state.set_pod(pod)
        self.seen, self.as_of = len(self.api.events), time.monotonic()

    def synced(self) -> bool:
        return True

    max_age = math.inf

    def age(self) -> float:
        return 0.0

    def is_stale(self) -> bool:
        return False

    @property
    def generation(self) -> int:
        return self.state.generation

    @property
    def rows(self) -> Rows:
        return self.state.rows

    async def until_synced(self) -> None:
        return

    async def until_pods_as_of(self, when: float) -> None:
        if self.as_of < when:
            self.relist()


class DirectBarriers:
    """Calls the binder's fence without the network."""

    def __init__(self, process: BinderProcess, holder: str) -> None:
        self._process = process
        self._holder = holder

    async def fence(self, epoch: int) -> BarrierAnswers:
        answer = await self._process.binder.fence.barrier(epoch, self._holder)
        now = time.monotonic()
        return BarrierAnswers(
            highest=answer.epoch,
            is_held=(answer.epoch, answer.holder) == (epoch, self._holder),
            binds=list(barrier_to_proto(answer, self._holder).binds),
            answered=now,
            complete_since=now - answer.memory,
        )

    async def fence_others(self, epoch: int) -> BarrierAnswers:
        return await self.fence(epoch)


class ModelGateway:
    """One process: it may be replaced by another one that knows nothing."""

    numbers = itertools.count()

    def __init__(
        self,
        api: Api,
        binder: BinderProcess,
        clock: Any,
    ) -> None:
        self.view = View(api, clock)
        self.view.relist()
        state = self.state = self.view.state
        self.term = Term()
        registry = CollectorRegistry()
        queue, reads = CycleQueue(), cast("KubeClient", Reads(api))
        policy, cycle_states = PolicyHolder(parse(POLICY, "policy")), CycleStates(10_000)
        policy.learn("filter", [_plugin(kind) for kind in KINDS])
        policy.learn("score", [])
        policy.learn("bind", [])
        self.phase = OneOfAKind(state)
        self.unknown = UnknownBinds(reads, state, settled_binds(registry), 0.0)
        binding = BindDispatcher(
            cast("BinderClient", binder),
            state,
            policy,
            cycle_states,
            KeptArrays(count=0, memory=0),
            lambda: 0,
            holder="gateway",
            term=self.term,
            unknown=self.unknown,
        )
        self.runner = Scheduler(
            term=self.term,
            cluster=cast("Cluster", self.view),
            policy=policy,
            queue=queue,
            judge=self.phase.judge,
            rank=_no_scores,
            binding=binding,
            log=DecisionLog(pods=1000, attempts=3),
            cycle_states=cycle_states,
            rejected=RejectedPods(state, policy),
            on_cycle_end=(),
            on_bind=(),
            metrics=CycleMetrics(registry),
            recheck_time=0.0,
            unknown_pod_wait=0.0,
            group_bind_wait=2.0,
        )
        barriers = DirectBarriers(binder, f"gateway-{next(self.numbers)}")
        self._terms = TermLoop(
            term=self.term,
            barriers=cast("Barriers", barriers),
            recovery=StateRecovery(reads, cast("Cluster", self.view), self.unknown.begin),
            between_cycles=queue.between_cycles,
            metrics=TermMetrics(registry, self.term),
            interval=1.0,
        )

    async def begin(self, epoch: int) -> None:
        """Begin a term, with the next epoch that nobody has."""
        while (highest := await self._terms.begin(epoch)) != epoch:
            epoch = highest

    async def fence_others(self) -> None:
        """Fence a binder that has come since the term began."""
        await self._terms.fence_others()


async def _no_scores(cycle: Cycle, nodes: NodeSet) -> PhaseScores:
    raise AssertionError(cycle, nodes)


def _plugin(kind: str) -> pb.Plugin:
    points = ["Filter"] if kind == "checks" else ["Filter", "Reserve"]
    return pb.Plugin(
        name=kind.capitalize(),
        extension_points=points,
        depends_on=pb.SCOPE_NODE,
        reads_placements=True,
    )
