"""Makes the pools of replicas, which all replicate one state and run one policy."""

import math
from functools import partial

from prometheus_client import CollectorRegistry

from gateway.cluster.cluster import Cluster
from gateway.decisions.versions import PluginVersions
from gateway.replicas.feed import StateFeed
from gateway.replicas.metrics import SessionFamilies, SessionMetrics
from gateway.replicas.pool import ReplicaPool
from gateway.replicas.rollout import Rollout
from gateway.replicas.service import FILTER, SCORER, ServiceKind, binder_of
from gateway.replicas.session import Session
from gateway.replicas.sources import PolicySource
from gateway.replicas.work import ReportRetry, WaitUntilIdle, ignore_retry
from gateway.settings import GatewaySettings
from moorage_host.tls.security import Security


class Pools:
    """Makes pools."""

    def __init__(
        self,
        settings: GatewaySettings,
        cluster: Cluster,
        policy: PolicySource,
        wait_until_idle: WaitUntilIdle,
        registry: CollectorRegistry,
        security: Security,
        versions: PluginVersions,
    ) -> None:
        """Have replicas follow *cluster* and run *policy*; keep the *versions* of their plugins."""
        self._settings = settings
        self._cluster = cluster
        self._policy = policy
        self._wait_until_idle = wait_until_idle
        self._security = security
        self._versions = versions
        self._feed = StateFeed(cluster.state)
        self._sessions = SessionFamilies(registry)

    def filters(self, retry: ReportRetry) -> ReplicaPool:
        """Return the filter replicas, whose plugins may ask to *retry* pods."""
        return self._pool(FILTER, self._settings.filter, self._settings.filter_wait, retry)

    def scorers(self) -> ReplicaPool:
        """Return the scorer replicas."""
        return self._pool(SCORER, self._settings.scorer, self._settings.scorer_wait)

    def binders(self, holder: str) -> ReplicaPool:
        """Return the binders, which get the state in the name of *holder*, and no cycles."""
        return self._pool(binder_of(holder), (self._settings.binder,), math.inf)

    def rollout(self, pool: ReplicaPool) -> Rollout:
        """Return what changes the policy of a pool."""
        metrics = SessionMetrics(self._sessions, pool.kind.name)
        trial = partial(Session, pool.kind, self._feed, metrics, self._security)
        return Rollout(pool, self._cluster.kinds, trial, greeting=self._settings.session_timeout)

    def _pool(
        self,
        kind: ServiceKind,
        targets: tuple[str, ...],
        longest_wait: float,
        retry: ReportRetry = ignore_retry,
    ) -> ReplicaPool:
        return ReplicaPool(
            kind,
            targets,
            feed=self._feed,
            policy=self._policy,
            cluster=self._cluster,
            objects=self._cluster.kinds,
            limits=self._settings,
            metrics=SessionMetrics(self._sessions, kind.name),
            security=self._security,
            wait_until_idle=self._wait_until_idle,
            longest_wait=longest_wait,
            retry=retry,
            versions=self._versions,
        )
