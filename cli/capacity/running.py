"""Runs the controller: one at a time of a cluster, for as long as it holds a Lease."""

import asyncio
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from cli.capacity import DEFAULT_LIMITS, RequestLimits
from cli.capacity.autoscalers import AUTOSCALERS, Karpenter
from cli.capacity.cluster import ClusterView, karpenter_problem
from cli.capacity.control import Controller
from cli.shared.gateway.client import connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from cli.shared.output import echo
from gateway.leadership.election import Lease, LeaseStore, LeaseTakenError
from moorage_host.kube import KubeClient, KubeError, connect
from moorage_host.kube.events import EventWriter
from moorage_host.process.lifecycle import stop_signals

LEASE: Final = "moorage-capacity"

LEASE_SECONDS: Final = 15.0
"""How long another controller waits after the last sign of one that was killed."""

SOONEST: Final = 0.2
"""Seconds from one look to the next at least, however much changes."""

FLUSH_SECONDS: Final = 2.0


async def run_until_signal(
    options: GatewayOptions, *, autoscaler: str, limits: RequestLimits
) -> None:
    """Do what `run` does until SIGTERM, SIGINT or SIGHUP."""
    with stop_signals() as stop:
        working = asyncio.create_task(run(options, autoscaler=autoscaler, limits=limits))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def run(
    options: GatewayOptions,
    *,
    autoscaler: str,
    limits: RequestLimits = DEFAULT_LIMITS,
    interval: float = 1.0,
) -> None:
    """Look every *interval* seconds, and sooner when something changes, until cancelled.

    Raises:
        ConfigurationError: A file cannot be used.
    """
    chosen = AUTOSCALERS[autoscaler]
    client = await connect(options.kubeconfig, context=options.context or None)
    try:
        events = EventWriter(client, socket.gethostname())
        view = ClusterView(client)
        controller = Controller(view, chosen, events, limits, echo)

        async def absent() -> str:
            return await karpenter_problem(client) if isinstance(chosen, Karpenter) else ""

        writing = asyncio.create_task(events.run())
        holding = HeldLease(client, client.namespace)
        try:
            async with view.followed():
                echo(f"nodes are asked of {chosen.title}")
                await _look(options, client, controller, view, holding, interval, absent)
        finally:
            await events.flush(FLUSH_SECONDS)
            writing.cancel()
            await holding.release()
    finally:
        await client.close()


async def _look(
    options: GatewayOptions,
    client: KubeClient,
    controller: Controller,
    view: ClusterView,
    holding: "HeldLease",
    interval: float,
    absent: Callable[[], Awaitable[str]],
) -> None:
    reported = ""
    while True:
        try:
            if not (problem := await holding.problem() or view.problem or await absent()):
                async with connected(options, client) as gateway:
                    while not (problem := await holding.problem() or view.problem):
                        view.changed.clear()
                        await controller.look(gateway)
                        reported = ""
                        await asyncio.sleep(SOONEST)
                        with suppress(TimeoutError):
                            async with asyncio.timeout(interval):
                                await view.changed.wait()
        except (GatewayError, KubeError, TimeoutError) as error:
            problem = str(error) or "no answer in time"
        if problem != reported:
            echo(f"no nodes are asked for: {problem}", err=True)
            reported = problem
        await asyncio.sleep(interval)


class HeldLease:
    """The Lease that says which controller works; others wait."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        """Hold the Lease in a namespace, from the first `problem` on."""
        self._store = LeaseStore(client, namespace or "default", LEASE, usual=LEASE_SECONDS)
        self._holder = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._lease = Lease()
        self._seen_at = self._renewed_at = float("-inf")

    async def problem(self) -> str:
        """Return who holds the Lease instead; "" if this process does. Renews it in time.

        Raises:
            KubeError: It cannot be read or written.
            TimeoutError: The same.
        """
        now = time.monotonic()
        if now - self._renewed_at < LEASE_SECONDS / 3:
            return ""
        lease = await self._store.read(LEASE_SECONDS / 3)
        if lease.version != self._lease.version:
            self._lease, self._seen_at = lease, now
        is_held = lease.holder not in ("", self._holder)
        if is_held and now - self._seen_at < max(lease.seconds, LEASE_SECONDS):
            return f"{lease.holder} holds the Lease {self._store.name}"
        try:
            self._lease = await self._store.write(
                lease, self._holder, seconds=LEASE_SECONDS, epoch=0, timeout=LEASE_SECONDS / 3
            )
        except LeaseTakenError as error:
            return str(error)
        self._seen_at = self._renewed_at = now
        return ""

    async def release(self) -> None:
        """Let another controller work at once, if this one does."""
        if self._renewed_at == float("-inf"):
            return
        with suppress(KubeError, TimeoutError, LeaseTakenError):  # it runs out
            await self._store.write(
                self._lease, "", seconds=1.0, epoch=0, timeout=LEASE_SECONDS / 3
            )
