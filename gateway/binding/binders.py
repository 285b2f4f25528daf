"""Puts the parts of this room together."""

import asyncio
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from gateway.binding.binding import Binding, BindPolicy
from gateway.binding.connection import BinderConnection
from gateway.binding.retries import Retries, RetryMetrics
from gateway.binding.settling import Settling
from gateway.binding.snapshots import BinderSnapshots
from gateway.binding.unseen import UnseenPods
from gateway.cluster.state import ClusterState
from gateway.decisions.decisions import Decisions
from gateway.leadership import Leadership
from gateway.settings import GatewaySettings
from moorage_host.tls.security import Security


@dataclass(frozen=True, slots=True, kw_only=True)
class Binders:
    """What the gateway has the binders do.

    Attributes:
        binding: Binds pods.
        retries: Has rejected pods tried again.
        snapshots: Sends the state to bind plugins that read it.
    """

    binding: Binding
    retries: Retries
    snapshots: BinderSnapshots
    settings: GatewaySettings

    async def run(self) -> None:
        """Follow the binders, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.binding.follow_plugins(self.settings.resolve_interval))
            group.create_task(self.binding.connection.follow_certificate())
            group.create_task(self.binding.settling.run())
            group.create_task(self.snapshots.run())
            group.create_task(self.retries.run(self.settings.retry_interval))


def make_binders(
    settings: GatewaySettings,
    state: ClusterState,
    policy: BindPolicy,
    snapshots: BinderSnapshots,
    settling: Settling,
    decisions: Decisions,
    leadership: Leadership,
    registry: CollectorRegistry,
    security: Security,
) -> Binders:
    """Return what calls the binders."""
    connection = BinderConnection(settings.binder, security)
    binding = Binding(
        connection,
        state,
        policy,
        decisions.cycle_states,
        decisions.arrays,
        snapshots.generation,
        holder=leadership.holder,
        term=leadership.term,
        settling=settling,
        unseen=UnseenPods(state, settings.unseen_pods),
    )
    return Binders(
        binding=binding,
        retries=Retries(connection, decisions.rejected, state, RetryMetrics(registry)),
        snapshots=snapshots,
        settings=settings,
    )
