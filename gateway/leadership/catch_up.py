"""Brings the state up to what the binders wrote in earlier terms, before a term begins."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from gateway.calls import BindCall
from gateway.cluster.cluster import Cluster
from gateway.cluster.pods import UNREAD, read_pod
from gateway.leadership.barriers import Fenced, Written
from moorage.models import Pod
from moorage_host.kube import KubeClient

MOST_READ = 64
"""Pods that are read one by one; for more, all pods are listed."""

READ_SECONDS = 10.0

READ_AGAIN = 1.0

Placed = list[tuple[Pod, Written]]
"""Pods, each with its bind."""

_log = structlog.get_logger()


class CatchUp:
    """Finds the pods that the watch has not shown on their nodes yet."""

    def __init__(
        self, client: KubeClient, cluster: Cluster, settle: Callable[[BindCall], None]
    ) -> None:
        """Compare with *cluster*; read pods that it does not know with *client*.

        Binds whose outcome no binder knows go to *settle*, which finds out.
        """
        self.state = cluster.state
        self._client = client
        self._cluster = cluster
        self._settle = settle

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
            seen, read_now = self.state.pod(bind.uid), by_uid.get(bind.uid)
            if seen is not None and not seen.spec.node_name:
                placed.append((seen, bind))
            # What was read may show its node already; the watch does not.
            if seen is None and read_now and read_now.spec.node_name in ("", bind.node):
                placed.append((read_now, bind))
        return placed

    def assume(self, placed: Placed) -> None:
        """Count pods as placed until the watch shows them."""
        for pod, bind in placed:
            if self.state.place_of(pod.uid) != bind.node and not self.state.has_ended(pod.uid):
                self.state.assume(pod, bind.node)
                self.state.confirm(pod.uid)
                if bind.is_unknown:
                    self._settle(_given_up(bind))

    def _is_unknown(self, uid: str) -> bool:
        return self.state.pod(uid) is None and not self.state.has_ended(uid)

    async def _read(self, bind: Written) -> Pod | None:
        """Read a pod, however long the API server is away; None if the pod is gone."""
        while True:
            try:
                return await read_pod(
                    self._client, bind.namespace, bind.name, bind.uid, timeout=READ_SECONDS
                )
            except UNREAD as error:
                _log.warning("A pod that was bound is not read yet", error=str(error))
                await asyncio.sleep(READ_AGAIN)


def _given_up(bind: Written) -> BindCall:
    """Return the call of a bind that no binder works on any more."""
    return BindCall(
        namespace=bind.namespace,
        name=bind.name,
        uid=bind.uid,
        node=bind.node,
        deadline=asyncio.get_running_loop().time(),
    )
