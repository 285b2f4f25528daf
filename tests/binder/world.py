"""What the tests of the binder share."""

import time
from typing import Any

from moorage.kube import KubeClient
from services.binder.attempt import RetryLimits
from services.binder.binding import Binder, BindLimits
from services.binder.cluster import Cluster
from services.binder.model import BindError, Binding, Outcome
from tests.live_api import Object, send

FAST = RetryLimits(initial=0.01, maximum=0.05, reserve=0.4)


class Observed:
    """Remembers what a binder tells."""

    def __init__(self) -> None:
        self.running = 0
        self.retries: list[str] = []
        self.ends: list[Outcome | BindError] = []

    def started(self) -> None:
        self.running += 1

    def retried(self, cause: str) -> None:
        self.retries.append(cause)

    def ended(self, binding: Binding, result: Outcome | BindError, seconds: float) -> None:
        self.running -= 1
        self.ends.append(result)


class TrackedCluster(Cluster):
    """Notes how many binds talk to the API server at the same time."""

    now = 0
    peak = 0

    async def create_binding(self, binding: Binding) -> None:
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            await super().create_binding(binding)
        finally:
            self.now -= 1


class World:
    """A binder on an API server."""

    def __init__(self, client: KubeClient, *, request_timeout: float = 5.0, **limits: Any) -> None:
        self.observed = Observed()
        self.cluster = TrackedCluster(client, request_timeout=request_timeout)
        self.binder = Binder(
            self.cluster, limits=BindLimits(retries=FAST, **limits), observer=self.observed
        )

    async def bind(self, pod: Object, node: str = "node-a", *, seconds: float = 10.0) -> Outcome:
        return await self.binder.bind(binding_of(pod, node), deadline=time.monotonic() + seconds)


def binding_of(pod: Object, node: str = "node-a", **more: Any) -> Binding:
    metadata = pod["metadata"]
    return Binding(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        node=node,
        **more,
    )


async def events_of(client: KubeClient) -> list[Object]:
    """Return the Events in the namespace default."""
    answer = await send(client, "GET", "/apis/events.k8s.io/v1/namespaces/default/events")
    items: list[Object] = answer["items"]
    return items
