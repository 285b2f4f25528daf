"""Puts the parts of this room together."""

import socket
import uuid
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from gateway.cluster.cluster import Cluster
from gateway.leadership.alone import Alone
from gateway.leadership.barriers import Barriers
from gateway.leadership.beginning import Beginning, TermMetrics
from gateway.leadership.catch_up import CatchUp
from gateway.leadership.term import Term
from moorage_host.kube import KubeClient
from moorage_host.tls.security import Security


class LeadershipSettings(Protocol):
    """What the user has chosen; see `gateway.settings`."""

    @property
    def binder(self) -> str:
        """Where the binders are."""

    @property
    def barrier_timeout(self) -> float:
        """Seconds after which a binder is left out."""

    @property
    def resolve_interval(self) -> float:
        """Seconds between looks for new binders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """What the gateway needs to know of its terms, and what begins and ends them."""

    term: Term
    barriers: Barriers
    run: Callable[[], Coroutine[Any, Any, None]]


def make_leadership(
    settings: LeadershipSettings,
    client: KubeClient,
    cluster: Cluster,
    between_cycles: Callable[[], AbstractAsyncContextManager[None]],
    registry: CollectorRegistry,
    security: Security,
) -> Leadership:
    """Return what begins and ends the terms of this process."""
    holder = f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}"  # another one after a restart
    term = Term()
    barriers = Barriers(
        (settings.binder,), holder, timeout=settings.barrier_timeout, security=security
    )
    beginning = Beginning(
        term=term,
        barriers=barriers,
        catch_up=CatchUp(client, cluster),
        between_cycles=between_cycles,
        metrics=TermMetrics(registry, term),
    )
    alone = Alone(term, beginning, interval=settings.resolve_interval)
    return Leadership(term=term, barriers=barriers, run=alone.run)
