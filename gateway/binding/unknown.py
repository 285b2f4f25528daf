"""Finds out how binds ended whose outcome was not known, so that no node counts as full for long.

The watch shows a pod that was bound. A pod that was not bound it never shows, so the API server is
asked. `gateway.binding.binding` calls it, and `gateway.leadership` about binds of earlier terms.
"""

import asyncio
from typing import NoReturn

import structlog
from prometheus_client import CollectorRegistry, Counter

from gateway.cluster.pods import UNREAD, read_pod
from gateway.cluster.state import ClusterState
from gateway.cycle import BindCall, CallFailedError
from moorage.models import Pod
from moorage_host.kube import KubeClient

INTERVAL = 0.5
"""How often it is looked which binds are due."""

WATCH_SECONDS = 0.5
"""How long after a bind was sent the watch may show it, before another binder is asked for it: an
only binder is not back sooner. An API server may not carry out what a dead binder asked for."""

LOOK_SECONDS = 0.05

log = structlog.get_logger()


def settled_binds(registry: CollectorRegistry) -> Counter:
    """Return the counter of binds that the API server was asked about."""
    return Counter(
        "moorage_settled_binds",
        "Binds of unknown outcome, by what the API server answered.",
        ["outcome"],
        registry=registry,
    )


class UnknownBinds:
    """Binds whose outcome is not known, or not yet: their pods are assumed."""

    def __init__(
        self, client: KubeClient, state: ClusterState, settled: Counter, wait: float
    ) -> None:
        """Ask *client* about a pod that is assumed in *state*, *wait* seconds after its deadline.

        A binder gives a bind up at its deadline; what it sent until then has arrived by that time.
        """
        self._client = client
        self._state = state
        self._counter = settled
        self._wait = wait
        self._calls: dict[str, BindCall] = {}

    def begin(self, call: BindCall) -> None:
        """Note a bind whose outcome is not known; ask after its deadline, unless it ends first."""
        self._calls[call.uid] = call

    def end(self, call: BindCall) -> None:
        """Ask about a bind no more: its outcome is known. A newer one of the pod goes on."""
        if self._calls.get(call.uid) is call:
            del self._calls[call.uid]

    async def resolve_pending_bind(
        self, namespace: str, name: str, uid: str, node: str = ""
    ) -> None:
        """Find out about an earlier bind before the pod may get another node than *node*.

        Else its node would be free while it may be bound there.

        Raises:
            CallFailedError: The pod is bound, or that is not known.
        """
        place = self._state.place_of(uid)
        if not place or place == node or not self._state.is_assumed(uid):
            return
        before, now = self._calls.get(uid), asyncio.get_running_loop().time()
        pending = f"it is not known yet whether an earlier bind has put the pod on node {place}"
        if before is not None and before.deadline + self._wait > now:
            raise CallFailedError(pending)
        try:
            bound_to = await self._bound_to(namespace, name, uid)
        except UNREAD as error:
            raise CallFailedError(f"{pending}: {error}") from error
        if self._calls.get(uid) is before and self._state.place_of(uid) == place:
            self._settled(uid, bound_to)
        if bound_to:
            raise CallFailedError(f"the pod is bound to node {bound_to} already")

    async def read(self, call: BindCall) -> Pod | None:
        """Return a pod as the API server has it; None if it is gone.

        Raises:
            CallFailedError: The API server does not answer, or refuses.
        """
        left = call.deadline - asyncio.get_running_loop().time()
        try:
            return await read_pod(
                self._client, call.namespace, call.name, call.uid, timeout=max(left, 0.001)
            )
        except UNREAD as error:
            raise CallFailedError(
                f"the pod cannot be read, so its node is not checked: {error}"
            ) from error

    async def shown(self, call: BindCall, sent_at: float) -> bool:
        """Return whether the watch shows a bind whose binder was lost; wait a while for it.

        Not for long after it was sent, at *sent_at* in `loop.time()`: half of the time that is left
        is for another binder.
        """
        now = asyncio.get_running_loop().time
        end = min(sent_at + WATCH_SECONDS, (now() + call.deadline) / 2)
        # Nobody is called when the watch shows what was assumed.
        while not self._state.bound_to(call.uid) and now() < end:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        return self._state.bound_to(call.uid) == call.node

    async def run(self) -> NoReturn:
        """Settle binds until cancelled."""
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(INTERVAL)
            for call in list(self._calls.values()):
                if self._state.place_of(call.uid) != call.node or self._state.bound_to(call.uid):
                    self.end(call)
                elif call.deadline + self._wait <= now():
                    await self._settle(call)

    async def _settle(self, call: BindCall) -> None:
        try:
            bound_to = await self._bound_to(call.namespace, call.name, call.uid)
        except UNREAD as error:
            log.debug("The outcome of a bind is still not known", pod=call.name, problem=str(error))
            return
        if self._calls.get(call.uid) is call:  # no newer bind has begun meanwhile
            self._settled(call.uid, bound_to)

    def _settled(self, uid: str, bound_to: str) -> None:
        self._calls.pop(uid, None)
        self._counter.labels("bound" if bound_to else "unbound").inc()
        if not bound_to:
            self._state.forget(uid)

    async def _bound_to(self, namespace: str, name: str, uid: str) -> str:
        """Return the node that the API server has the pod on; "" for none, or without the pod."""
        pod = await read_pod(self._client, namespace, name, uid, timeout=self._wait or 1.0)
        return (pod.spec.node_name or "") if pod is not None else ""
