"""Random groups on gateways of the real parts, in virtual time, beside a kube-scheduler of a page.

Groups of many sizes come, member by member; members and groups are deleted, nodes are lost and
come back, gateways and the binder are killed, binds are slow or fail. Then it becomes quiet, and
what is left is judged.
"""

import asyncio
import logging
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import structlog

from gateway.cycle import BindCall, CallFailedError, Cycle, NodeSet
from gateway.cycle.verdicts import Verdicts
from gateway.replicas.filters import read
from moorage.execution import EnabledPlugin, Profile, Supervisor, start_plugin
from moorage.groups import PODS
from moorage.models import ObjectName, Pod, decode_node, decode_pod, encode
from moorage.testing import time_is
from moorage.v1 import filter_pb2
from moorage_host.plugins import CycleInput
from services.filter.engine import run_filters
from services.filter.plugins.gang import Gang
from services.filter.servicer import FilterServicer
from tools.model.api import Api, Event
from tools.model.binder import BinderProcess
from tools.model.clock import VirtualLoop
from tools.model.gateway import ModelGateway, OneOfAKind

SECONDS = 3.0
"""What a call may take."""

QUIET = 400.0
"""Seconds without new trouble, in which everything that fits has to be placed."""

NODES, SLOTS = 30, 8
"""Nodes, and pods on each."""

SIZES = (2, 2, 3, 3, 4, 5, 8, 12, 16, 30, 60, 100)

TIMEOUT = 20.0
"""Seconds for which groups hold nodes."""


class Gangs(OneOfAKind):
    """The filter phase: the plugin Gang, by what the replica knows."""

    api: Api

    def __init__(self, state: Any) -> None:
        super().__init__(state)
        plugin = Gang(Gang.Args(timeout=TIMEOUT))
        self._enabled = EnabledPlugin(plugin=plugin)
        self._started = False
        self._known: set[str] = set()

    async def judge(self, cycle: Cycle) -> Verdicts:
        """Answer as a replica does, by the same messages."""
        if not self._started:
            await start_plugin(self._enabled)
            self.replica.snapshot.objects.open(Gang.reads)
            self._started = True
        reached = await self.follow()
        self._follow_members()
        cycle.rows = rows = self._index.find(cycle.nodes)
        profile = Profile(name="gang", plugins=(self._enabled,))
        work = CycleInput(profile="gang", pod=cycle.pod, candidates=rows.bitmap)
        nodes = self.replica._select(work)
        with time_is(datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC)):
            run = await run_filters(profile, cycle.pod, nodes, Supervisor(runs=[]))
        result = filter_pb2.FilterResult(generation=reached)
        encoding = cast("Any", FilterServicer.encode)
        encoding(None, None, nodes, run, result)
        return read(result, rows, "", lambda: None)

    def _follow_members(self) -> None:
        """Read the members as the watch of the plugin's kind shows them: always at once."""
        store, now = self.replica.snapshot.objects, {}
        store.open(Gang.reads)
        for pod in self.api.pods.values():
            now[pod.uid] = ObjectName(PODS, pod.namespace, pod.name)
            store.put(now[pod.uid], encode(pod))
        for uid in self._known - set(now):
            store.remove(ObjectName(PODS, "default", uid.removeprefix("uid-")))
        self._known = set(now)


@dataclass
class Told:
    """What became of a run.

    Attributes:
        groups: How many groups there were.
        excused: Groups of which a part runs, because a member was deleted, lost or failed after
            others were bound.
        problems: What must not be.
    """

    groups: int = 0
    whole: int = 0
    excused: int = 0
    problems: list[str] = field(default_factory=list)


class Run:
    """One run, from one seed."""

    def __init__(self, seed: int, groups: int) -> None:
        self._random = random.Random(seed)
        self.count = groups
        self.api = Api()
        self.loop = VirtualLoop()
        self.told = Told(groups=groups)
        self.sizes: dict[str, int] = {}
        self.disturbed: set[str] = set()
        self.assumed: dict[str, str] = {}
        self.ready_at: dict[str, float] = defaultdict(float)
        self.attempts: Counter[str] = Counter()
        self.calls: set[asyncio.Task[None]] = set()
        self.faulty = True
        self.gateways: list[ModelGateway] = []
        self.leader = 0

    def run(self) -> Told:
        """Run it to its end."""
        try:
            self.loop.run(self._main())
        finally:
            self.loop.run(self.loop.shutdown_asyncgens())
            self.loop.close()
        return self.told

    # ---- the world

    async def _main(self) -> None:
        self.process = BinderProcess(self.api)
        for number in range(NODES):
            self._add_node(f"n{number}")
        self.gateways = [self._gateway(), self._gateway()]
        await self._lead(0)
        scheduler = asyncio.create_task(self._schedule())
        for number in range(self.count):
            await self._one_group(f"g{number}")
            await self._trouble()
        self.faulty = False
        for number in range(NODES):
            if f"n{number}" not in self.api.nodes:
                self._add_node(f"n{number}")
        await self._wait_until_quiet()
        scheduler.cancel()
        await asyncio.gather(scheduler, *self.calls, return_exceptions=True)
        self._judge()

    async def _one_group(self, name: str) -> None:
        size = self._random.choice(SIZES)
        exists = size if self._random.random() < 0.9 else size - 1
        self.sizes[name] = size
        priority = self._random.choice((0, 0, 0, 10))
        for number in range(exists):
            self._add_pod(name, number, size, priority)
            if self._random.random() < 0.1:
                await asyncio.sleep(self._random.random())
        await asyncio.sleep(self._random.expovariate(0.2))

    async def _trouble(self) -> None:
        kind = self._random.random()
        names = sorted({_group(pod) for pod in self.api.pods.values()})
        if kind < 0.35 and len(names) > 4:  # a group ends
            self._delete_group(self._random.choice(names))
        elif kind < 0.42 and self.api.pods:  # a member is deleted, at any time
            uid = self._random.choice(sorted(self.api.pods))
            self.disturbed.add(_group(self.api.pods[uid]))
            self._delete(uid)
        elif kind < 0.50 and len(self.api.nodes) > NODES // 2:  # a node is lost
            node = self._random.choice(sorted(self.api.nodes))
            for pod in list(self.api.pods.values()):
                if pod.spec.node_name == node:
                    self.disturbed.add(_group(pod))
            self.api.remove_node(node)
        elif kind < 0.55:
            missing = [f"n{i}" for i in range(NODES) if f"n{i}" not in self.api.nodes]
            for node in missing:
                self._add_node(node)
        elif kind < 0.60:  # kill -9 of the gateway that leads
            self.disturbed |= {_group(self.api.created[uid]) for uid in self.assumed}
            self.gateways[self.leader] = self._gateway()
            await self._lead(1 - self.leader)
        elif kind < 0.63:
            self.process.restart()
            await self.gateways[self.leader].fence_others()

    def _add_node(self, name: str) -> None:
        amounts = {"cpu": str(SLOTS), "memory": "64Gi", "pods": "110"}
        manifest = {"metadata": {"name": name}, "status": {"allocatable": amounts}}
        node = decode_node(msgspec.json.encode(manifest))
        self.api.nodes[name] = node
        self.api.events.append(Event(node=node))

    def _add_pod(self, group: str, number: int, size: int, priority: int) -> None:
        name = f"{group}-{number}"
        labels = {"moorage.io/group": group, "moorage.io/group-size": str(size)}
        pod = decode_pod(
            msgspec.json.encode(
                {
                    "metadata": {
                        "name": name,
                        "namespace": "default",
                        "uid": f"uid-{name}",
                        "labels": labels,
                        "creationTimestamp": f"{self.loop.now:012.3f}",
                    },
                    "spec": {
                        "schedulerName": "gang",
                        "priority": priority,
                        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
                    },
                }
            )
        )
        self.api.pods[pod.uid] = self.api.created[pod.uid] = pod
        self.api.events.append(Event(pod=pod))

    def _delete(self, uid: str) -> None:
        self.api.remove_pod(uid)
        self.assumed.pop(uid, None)

    def _delete_group(self, name: str) -> None:
        for uid in [uid for uid, pod in self.api.pods.items() if _group(pod) == name]:
            self._delete(uid)
        self.sizes.pop(name, None)

    # ---- gateways

    def _gateway(self) -> ModelGateway:
        Gangs.api = self.api
        return ModelGateway(self.api, self.process, self.loop.time, Gangs)

    async def _lead(self, number: int) -> None:
        gateway = self.gateways[number]
        epoch = max(self.process.binder.fence.epoch, gateway.term.epoch) + 1
        await gateway.begin(epoch)
        self.leader = number

    # ---- kube-scheduler

    async def _schedule(self) -> None:
        while True:
            waiting = [pod for pod in self.api.pods.values() if self._is_due(pod)]
            if not waiting:
                await asyncio.sleep(0.2)
                continue
            waiting.sort(key=lambda p: (-p.spec.priority, p.metadata.creation_timestamp, p.name))
            await self._try(waiting[0])
            await asyncio.sleep(0.01)

    def _is_due(self, pod: Pod) -> bool:
        if pod.spec.node_name or pod.uid in self.assumed:
            return False
        return self.ready_at[pod.uid] <= self.loop.now

    async def _try(self, pod: Pod) -> None:
        gateway = self.gateways[self.leader]
        late = self.faulty and self._random.random() < 0.05
        if not late:  # the watch of the gateway may be behind
            gateway.view.watch(len(self.api.events))
        gateway.state.expire()
        used = self._used()
        names = [name for name in self.api.nodes if used[name] < SLOTS]
        if not names:
            self._back_off(pod)
            return
        cycle = Cycle(
            pod=pod, pod_json=encode(pod), nodes=NodeSet(names), deadline=self.loop.now + SECONDS
        )
        try:
            await gateway.runner.filter(cycle)
        except CallFailedError:
            self._back_off(pod)
            return
        if not cycle.feasible.names or pod.uid not in self.api.pods:
            self._back_off(pod)
            return
        node = self._random.choice(list(cycle.feasible.names))
        self.assumed[pod.uid] = node
        call = asyncio.create_task(self._bind(pod, node, self.leader))
        self.calls.add(call)
        call.add_done_callback(self.calls.discard)

    async def _bind(self, pod: Pod, node: str, leader: int) -> None:
        await asyncio.sleep(self._random.random() * (2.0 if self.faulty else 0.1))
        if self.faulty and self._random.random() < 0.03:
            self.api.faults[pod.uid] = self._random.choice(("lost", "refused"))
        deadline = self.loop.now + SECONDS
        call = BindCall(
            namespace="default", name=pod.name, uid=pod.uid, node=node, deadline=deadline
        )
        try:
            await self.gateways[leader].runner.bind(call)
            self._check_whole(pod, self.gateways[leader])
        except CallFailedError:
            if pod.uid in self.api.pods and not self.api.pods[pod.uid].spec.node_name:
                self.disturbed.add(_group(pod))
            self._back_off(pod)
        finally:
            self.assumed.pop(pod.uid, None)

    def _check_whole(self, pod: Pod, gateway: ModelGateway) -> None:
        """Note a bind of a member while too few others are on nodes, or hold one."""
        group = _group(pod)
        members = [uid for uid, each in self.api.created.items() if _group(each) == group]
        placed = sum(bool(gateway.state.place_of(uid)) for uid in members)
        if placed < self.sizes.get(group, 0) and group not in self.disturbed:
            self.told.problems.append(f"{pod.name} bound with {placed} of its group on nodes")

    def _back_off(self, pod: Pod) -> None:
        self.attempts[pod.uid] += 1
        pause = min(2.0 ** min(self.attempts[pod.uid] - 1, 10), 10.0)
        self.ready_at[pod.uid] = self.loop.now + pause

    def _used(self) -> Counter[str]:
        used = Counter(p.spec.node_name for p in self.api.pods.values() if p.spec.node_name)
        used.update(
            node for uid, node in self.assumed.items() if not self.api.pods[uid].spec.node_name
        )
        return used

    # ---- what is left

    async def _wait_until_quiet(self) -> None:
        """Wait for what fits, and for what is held in vain to end."""
        end = self.loop.now + QUIET
        while self.loop.now < end:
            await asyncio.sleep(2.0)
            if not self.calls and not list(self._fitting()):
                break
        await asyncio.sleep(2 * TIMEOUT + 15.0)

    def _fitting(self) -> Iterator[str]:
        """Yield complete groups that are not placed and for which there is room."""
        free = len(self.api.nodes) * SLOTS - sum(self._used().values())
        for name, (there, bound) in self._counts().items():
            size = self.sizes.get(name, 0)
            if there >= size and bound < size and free >= there - bound:
                yield f"{name}: {bound} of {there} bound, and {free} places are free"

    def _counts(self) -> dict[str, tuple[int, int]]:
        there: Counter[str] = Counter(_group(pod) for pod in self.api.pods.values())
        bound = Counter(_group(p) for p in self.api.pods.values() if p.spec.node_name)
        return {name: (count, bound[name]) for name, count in there.items()}

    def _judge(self) -> None:
        told = self.told
        told.problems += [f"deadlock: {each}" for each in self._fitting()]
        for name, (there, bound) in self._counts().items():
            if bound >= self.sizes.get(name, 0):
                told.whole += 1
            elif bound and name in self.disturbed:
                told.excused += 1
            elif bound:
                told.problems.append(f"partial: {bound} of {there} of {name}")
        on_nodes = Counter(p.spec.node_name for p in self.api.pods.values() if p.spec.node_name)
        told.problems += [f"over-committed: {n}" for n, c in on_nodes.items() if c > SLOTS]
        for number, gateway in enumerate(self.gateways):
            gateway.view.watch(len(self.api.events))
            gateway.state.expire()
            if number == self.leader and (claims := gateway.state.counts["claims"]):
                told.problems.append(f"{claims} claims are left")


def run_groups(seed: int, groups: int) -> bool:
    """Run so many groups from a seed, and print what became of them; return whether it is bad."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    told = Run(seed, groups).run()
    problems = "; ".join(told.problems) or "no problem"
    print(
        f"seed {seed}: {told.groups} groups, in the end {told.whole} whole, {told.excused} in part "
        f"after a loss: {problems}",
        flush=True,
    )
    return bool(told.problems)


def _group(pod: Pod) -> str:
    return str(pod.labels["moorage.io/group"])
