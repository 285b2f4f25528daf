"""Brings the state up to what the binders wrote in earlier terms, before a term begins."""

import asyncio
from collections.abc import Sequence

import structlog

from gateway.cluster.cluster import Cluster
from gateway.cluster.watch.resources import UNFINISHED_PODS
from gateway.cluster.watch.wire import ObjectList, decode_list
from gateway.leadership.barriers import Fenced, Written
from moorage.models import Pod, decode_pod
from moorage_host.kube import KubeClient, KubeError

MOST_READ = 64
"""Pods that are read one by one; for more, all pods are listed."""

READ_SECONDS = 10.0

READ_AGAIN = 1.0

Placed = list[tuple[Pod, str]]
"""Pods, each with its node."""

_log = structlog.get_logger()


class CatchUp:
    """Finds the pods that the watch has not shown on their nodes yet."""

    def __init__(self, client: KubeClient, cluster: Cluster) -> None:
        """Compare with *cluster*; read pods that it does not know with *client*."""
        self.state = cluster.state
        self._client = client
        self._cluster = cluster

    async def missing(self, fenced: Fenced) -> Placed:
        """Return the pods that have to be assumed, once the state has everything else."""
        await self._cluster.until_synced()
        await self._cluster.until_pods_as_of(fenced.complete_since)
        unknown = [bind for bind in fenced.binds if self._is_unknown(bind.uid)]
        if len(unknown) > MOST_READ:
            await self._cluster.until_pods_as_of(fenced.answered)
            read: Sequence[Pod | None] = []
        else:
            read = await asyncio.gather(*(self._read(bind) for bind in unknown))
        by_uid = {pod.uid: pod for pod in read if pod is not None}
        placed = []
        for bind in fenced.binds:
            seen = self.state.pod(bind.uid)
            if seen is not None and not seen.spec.node_name:
                placed.append((seen, bind.node))
            elif seen is None and (pod := by_uid.get(bind.uid)) is not None:
                placed.append((pod, pod.spec.node_name or bind.node))
        return placed

    def assume(self, placed: Placed) -> None:
        """Count pods as placed until the watch shows them."""
        for pod, node in placed:
            if self.state.place_of(pod.uid) != node and not self.state.has_ended(pod.uid):
                self.state.assume(pod, node)
                self.state.confirm(pod.uid)

    def _is_unknown(self, uid: str) -> bool:
        return self.state.pod(uid) is None and not self.state.has_ended(uid)

    async def _read(self, bind: Written) -> Pod | None:
        """Read a pod with the permission to list; None if it is gone or has ended."""
        path = f"/api/v1/namespaces/{bind.namespace}/pods"
        query = {"fieldSelector": f"metadata.name={bind.name},{UNFINISHED_PODS}"}
        while True:
            try:
                response = await self._client.request(
                    "GET", path, query=query, timeout=READ_SECONDS
                )
                page: ObjectList = decode_list(response.check().body)
                break
            except (KubeError, TimeoutError) as error:
                _log.warning("A pod that was bound is not read yet", error=str(error))
                await asyncio.sleep(READ_AGAIN)
        found = [decode_pod(raw) for raw in page.items or ()]
        return next((pod for pod in found if pod.uid == bind.uid), None)
