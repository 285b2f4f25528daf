"""What the gateway has the binders do beside binds: keep a snapshot, and wake rejected pods.

Bind plugins may read the state of the cluster; as long as an enabled plugin does, it is sent to the
binders. And kube-scheduler leaves a rejected pod alone until the cluster changes: it does not see
what changes outside, so the binder writes to the pods when the plugin that rejected them asks.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress

import grpc.aio
import structlog
from prometheus_client import CollectorRegistry, Counter

from gateway.binding.binding import Binding, PodsAheadOfWatch
from gateway.binding.client import BinderClient
from gateway.binding.unknown import UnknownBinds
from gateway.cluster.state import ClusterState
from gateway.decisions.decisions import Decisions
from gateway.decisions.rejected import RejectedPod, RejectedPods
from gateway.leadership import Leadership
from gateway.policy.policy import PolicyHolder
from gateway.replicas.set import ReplicaSet
from gateway.settings import GatewaySettings
from moorage.v1 import binder_pb2 as pb
from moorage_host.rpc.stream import StreamLostError
from moorage_host.tls.security import Security

ANY_GENERATION = 1
"""What binds ask for while no binder has the state: any that it gets."""

PODS_PER_CALL = 500

CALL_SECONDS = 30.0

_log = structlog.get_logger()


class Binders:
    """The binders.

    Attributes:
        binding: Binds pods.
        retries: Has rejected pods tried again.
        snapshots: Sends the state to bind plugins that read it.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        state: ClusterState,
        policy: PolicyHolder,
        snapshots: "BinderSnapshots",
        unknown: UnknownBinds,
        decisions: Decisions,
        leadership: Leadership,
        registry: CollectorRegistry,
        security: Security,
    ) -> None:
        client = BinderClient(settings.binder, security)
        self.snapshots = snapshots
        self.binding = Binding(
            client,
            state,
            policy,
            decisions.cycle_states,
            decisions.arrays,
            snapshots.generation,
            holder=leadership.holder,
            term=leadership.term,
            unknown=unknown,
            pods_ahead=PodsAheadOfWatch(state),
        )
        self.retries = PodRetries(client, decisions.rejected, state, retried_pods(registry))
        self._settings = settings

    async def run(self) -> None:
        """Follow the binders, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.binding.follow_plugins(self._settings.resolve_interval))
            group.create_task(self.binding.client.follow_certificate())
            group.create_task(self.binding.unknown.run())
            group.create_task(self.snapshots.run())
            group.create_task(self.retries.run(self._settings.retry_interval))


class BinderSnapshots:
    """Sends binders the state while an enabled bind plugin reads it."""

    def __init__(self, make_pool: Callable[[], ReplicaSet]) -> None:
        """Send the state through the pool that *make_pool* makes each time."""
        self._make_pool = make_pool
        self._pool: ReplicaSet | None = None
        self._needed: Hashable = None
        self._changed = asyncio.Event()

    def need(self, what: Hashable) -> None:
        """Take over what is needed from here on: None for nothing, else the kinds of objects."""
        if what != self._needed:
            self._needed = what
            self._changed.set()

    async def run(self) -> None:
        """Send the state while it is needed, until cancelled."""
        while True:
            self._changed.clear()
            if self._needed is None:
                await self._changed.wait()
                continue
            async with asyncio.TaskGroup() as group:
                self._pool = self._make_pool()
                sending = group.create_task(self._pool.run())
                try:
                    await self._changed.wait()
                finally:
                    self._pool = None
                    sending.cancel()

    def generation(self) -> int:
        """Send what has changed, and return which generation binds have to wait for; 0 for none."""
        if self._needed is None:
            return 0
        generations = []
        for member in self._pool.all if self._pool else ():
            with suppress(StreamLostError):  # the pool finds out
                member.session.flush()
                generations.append(member.session.state_generation)
        return min(generations, default=ANY_GENERATION)


def retried_pods(registry: CollectorRegistry) -> Counter:
    """Return the counter of pods that were to be tried again."""
    return Counter(
        "moorage_retried_pods",
        "Pods that were to be tried again because the plugin that rejected them asked for it, "
        "by outcome: written, or failed.",
        ["plugin", "outcome"],
        registry=registry,
    )


class PodRetries:
    """Has pods tried again that a plugin rejected, when the plugin asks for it."""

    def __init__(
        self, client: BinderClient, rejected: RejectedPods, state: ClusterState, retried: Counter
    ) -> None:
        """Call the binder through *client* about *rejected* pods that still wait in *state*."""
        self._client = client
        self._rejected = rejected
        self._state = state
        self._asked: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._counter = retried

    def ask(self, plugin: str, reason: str) -> None:
        """Note that a plugin asks for another attempt on the pods that it rejected."""
        self._asked[plugin] = reason
        self._changed.set()

    async def run(self, interval: float) -> None:
        """Have pods tried again, every *interval* seconds at most, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            asked, self._asked = self._asked, {}
            for plugin, reason in asked.items():
                pods = [pod for pod in self._rejected.by(plugin) if self._waits(pod)]
                for start in range(0, len(pods), PODS_PER_CALL):
                    await self._call(plugin, reason, pods[start : start + PODS_PER_CALL])
            await asyncio.sleep(interval)

    async def _call(self, plugin: str, reason: str, pods: Sequence[RejectedPod]) -> None:
        request = pb.BinderServiceRetryPodsRequest(plugin=plugin, reason=reason)
        for pod in pods:
            request.pods.add(namespace=pod.namespace, name=pod.name, uid=pod.uid)
        try:
            answer = await self._client.stub.RetryPods(
                request, timeout=CALL_SECONDS, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            self._counter.labels(plugin, "failed").inc(len(pods))
            _log.warning(
                "Rejected pods are not tried again", plugin=plugin, error=str(error.details())
            )
            return
        self._counter.labels(plugin, "written").inc(answer.written)
        _log.info("Rejected pods are tried again", plugin=plugin, pods=answer.written)

    def _waits(self, rejected: RejectedPod) -> bool:
        pod = self._state.pod(rejected.uid)
        if pod is not None and not pod.spec.node_name:
            return True
        self._rejected.drop(rejected.uid)
        return False
