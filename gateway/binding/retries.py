"""Has pods tried again that a plugin rejected, when the plugin asks for it.

kube-scheduler leaves a rejected pod alone until the cluster changes. It does not see what changes
outside, so the binder writes to the pods.
"""

import asyncio
from collections.abc import Sequence

import grpc
import grpc.aio
import structlog
from prometheus_client import CollectorRegistry, Counter

from gateway.binding.connection import BinderConnection
from gateway.cluster.state import ClusterState
from gateway.decisions.rejected import RejectedPod, RejectedPods
from moorage.v1 import binder_pb2 as pb

PODS_PER_CALL = 500

CALL_SECONDS = 30.0

_log = structlog.get_logger()


class RetryMetrics:
    """Counts the pods."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.pods = Counter(
            "moorage_retried_pods",
            "Pods that were to be tried again because the plugin that rejected them asked for it, "
            "by outcome: written, or failed.",
            ["plugin", "outcome"],
            registry=registry,
        )


class Retries:
    """Collects what plugins ask for, and asks the binder."""

    def __init__(
        self,
        connection: BinderConnection,
        rejected: RejectedPods,
        state: ClusterState,
        metrics: "RetryMetrics",
    ) -> None:
        """Call the binder on *connection* about *rejected* pods that still wait in *state*."""
        self._connection = connection
        self._rejected = rejected
        self._state = state
        self._asked: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._metrics = metrics

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
                await self._retry(plugin, reason)
            await asyncio.sleep(interval)

    async def _retry(self, plugin: str, reason: str) -> None:
        pods = [pod for pod in self._rejected.by(plugin) if self._waits(pod)]
        for start in range(0, len(pods), PODS_PER_CALL):
            await self._call(plugin, reason, pods[start : start + PODS_PER_CALL])

    async def _call(self, plugin: str, reason: str, pods: Sequence[RejectedPod]) -> None:
        request = pb.BinderServiceRetryPodsRequest(plugin=plugin, reason=reason)
        for pod in pods:
            request.pods.add(namespace=pod.namespace, name=pod.name, uid=pod.uid)
        try:
            answer = await self._connection.stub.RetryPods(
                request, timeout=CALL_SECONDS, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            self._metrics.pods.labels(plugin, "failed").inc(len(pods))
            _log.warning(
                "Rejected pods are not tried again", plugin=plugin, error=str(error.details())
            )
            return
        self._metrics.pods.labels(plugin, "written").inc(answer.written)
        _log.info("Rejected pods are tried again", plugin=plugin, pods=answer.written)

    def _waits(self, rejected: RejectedPod) -> bool:
        pod = self._state.pod(rejected.uid)
        if pod is not None and not pod.spec.node_name:
            return True
        self._rejected.drop(rejected.uid)
        return False
