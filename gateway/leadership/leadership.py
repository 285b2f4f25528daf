"""Puts the parts of this room together."""

import socket
import uuid
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from gateway.calls import BindCall
from gateway.cluster.cluster import Cluster
from gateway.leadership.barriers import Barriers
from gateway.leadership.beginning import Beginning, TermMetrics
from gateway.leadership.catch_up import CatchUp
from gateway.leadership.election import Durations, Election
from gateway.leadership.lease import LeaseStore
from gateway.leadership.term import Term
from gateway.leadership.terms import Terms
from gateway.settings import GatewaySettings
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient
from moorage_host.tls.security import Security


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """What the gateway needs to know of its terms, and what begins and ends them.

    Attributes:
        holder: The name of this process at the binders and in the Lease.
        term: The current term, or the absence of one.
        barriers: At the binders.
        run: Begins and ends terms, until cancelled.
        election: By the Lease, if there is one.
    """

    holder: str
    term: Term
    barriers: Barriers
    run: Callable[[], Coroutine[Any, Any, None]]
    election: Election | None = None


def make_leadership(
    settings: GatewaySettings,
    client: KubeClient,
    cluster: Cluster,
    between_cycles: Callable[[], AbstractAsyncContextManager[None]],
    settle: Callable[[BindCall], None],
    registry: CollectorRegistry,
    security: Security,
) -> Leadership:
    """Return what begins and ends the terms of this process; *settle* as in `CatchUp`."""
    holder = f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}"  # another one after a restart
    term = Term()
    barriers = Barriers(
        (settings.binder,), holder, timeout=settings.barrier_timeout, security=security
    )
    beginning = Beginning(
        term=term,
        barriers=barriers,
        catch_up=CatchUp(client, cluster, settle),
        between_cycles=between_cycles,
        metrics=TermMetrics(registry, term),
    )
    terms = Terms(term, beginning, interval=settings.resolve_interval)
    if settings.leader_election == "none":
        return Leadership(holder=holder, term=term, barriers=barriers, run=terms.run)
    store = LeaseStore(client, settings.lease_namespace, settings.lease_name)
    election = Election(store, term, terms, holder, _durations(settings))
    return Leadership(
        holder=holder, term=term, barriers=barriers, run=election.run, election=election
    )


def _durations(settings: GatewaySettings) -> Durations:
    lease, renew = settings.lease_duration, settings.lease_renew_deadline
    retry = settings.lease_retry_period
    if not lease > renew > retry:
        raise ConfigurationError(
            f"--lease-duration ({lease:g} s) must be longer than --lease-renew-deadline "
            f"({renew:g} s), and that longer than --lease-retry-period ({retry:g} s): otherwise "
            "another gateway takes the Lease before its holder stops"
        )
    return Durations(lease=lease, renew=renew, retry=retry)
