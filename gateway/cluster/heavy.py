"""Pods whose manifests are large, by namespace, and what is kept of them.

Nearly all pods have some kilobytes. Those of one tenant may have a megabyte each; so they are
counted, as the API server sends them, and past a limit the namespace's further ones are kept
without labels and annotations. Their resources count all the same.
"""

from collections import Counter

import structlog
from msgspec.structs import replace

from moorage.models import Pod
from moorage.models.base import NOTHING

HEAVY_BYTES = 16 << 10
"""From which size on a pod is counted."""

MOST_BYTES = 64 << 20
"""Of such pods of one namespace, before labels and annotations of further ones are left out."""

SHOWN = 20
"""Namespaces that a metric has, those with most."""

log = structlog.get_logger()


class HeavyPods:
    """The large pods that are known.

    Attributes:
        of: The namespace and the size of each, by UID.
    """

    def __init__(self) -> None:
        self.of: dict[str, tuple[str, int]] = {}
        self._bytes: Counter[str] = Counter()

    def take(self, pod: Pod, size: int) -> Pod:
        """Count a pod that has changed; return what is kept of it."""
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        self.drop(uid)
        if size < HEAVY_BYTES:
            return pod
        self.of[uid] = namespace, size
        self._bytes[namespace] += size
        if self._bytes[namespace] <= MOST_BYTES:
            return pod
        log.warning(
            "A pod is kept without labels and annotations: its namespace has too many large ones",
            namespace=namespace,
            pod=pod.metadata.name,
            bytes=self._bytes[namespace],
        )
        return replace(pod, metadata=replace(pod.metadata, labels=NOTHING, annotations=NOTHING))

    def drop(self, uid: str) -> None:
        """Count a pod no longer."""
        namespace, size = self.of.pop(uid, ("", 0))
        self._bytes[namespace] -= size
        if not self._bytes[namespace]:
            del self._bytes[namespace]

    def largest(self) -> dict[str, int]:
        """Return the bytes of the namespaces with most, in descending order."""
        return dict(self._bytes.most_common(SHOWN))
