"""Has kube-scheduler try rejected pods again, by a write to each that wakes its queue.

kube-scheduler tries a pod that an extender rejected again when anything about the pod changes. A
condition in its status is the change that needs least: the right to patch a pod's status allows no
change of what the pod runs.
"""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime

import structlog

from moorage_host.kube import KubeStatusError
from services.binder.cluster import PodClient

CONDITION = "moorage.io/RetryRequested"

CONCURRENCY = 8
"""Pods that are written to at the same time."""

LONGEST_TEXT = 256
"""Characters of a condition's reason and message: what plugins write is for people to read."""

GONE = frozenset((404, 409))
"""There is no such pod, or another one of the same name."""

REFUSED = 422
"""An admission policy of the cluster does not allow it for this pod."""

_log = structlog.get_logger()


class Retries:
    """Writes to pods."""

    def __init__(self, cluster: PodClient) -> None:
        self._cluster = cluster
        self._slots = asyncio.Semaphore(CONCURRENCY)

    async def retry(self, pods: Iterable[tuple[str, str, str]], plugin: str, reason: str) -> int:
        """Write to each pod, by namespace, name and uid, that is still there; return how many are.

        Raises:
            KubeError: The API server refuses a write, or does not answer.
            TimeoutError: It does not answer.
        """
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {
            "type": CONDITION,
            "status": "True",
            "reason": plugin[:LONGEST_TEXT] or "Asked",
            "message": reason[:LONGEST_TEXT],
            "lastProbeTime": now,
            "lastTransitionTime": now,
        }
        writes = [self._write(*pod, condition) for pod in pods]
        results = await asyncio.gather(*writes, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return sum(map(bool, results))

    async def _write(self, namespace: str, name: str, uid: str, condition: dict[str, str]) -> bool:
        async with self._slots:
            try:
                await self._cluster.set_condition(namespace, name, uid, condition)
            except KubeStatusError as error:
                if error.status == REFUSED:
                    _log.warning("A pod is not tried again", pod_uid=uid, error=str(error))
                elif error.status not in GONE:
                    raise
                return False
        return True
