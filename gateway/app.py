"""Puts the gateway together and runs it."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web
from prometheus_client import REGISTRY, CollectorRegistry

from gateway.binding.binding import Binding
from gateway.binding.connection import BinderConnection
from gateway.binding.retries import Retries, RetryMetrics
from gateway.binding.settling import Settling
from gateway.binding.snapshots import BinderSnapshots
from gateway.binding.unseen import UnseenPods
from gateway.cache.filter_cache import FilterCache
from gateway.cache.score_cache import ScoreCache
from gateway.cluster.cluster import Cluster
from gateway.cluster.state import ClusterState
from gateway.cluster.watch.limits import ReflectorLimits
from gateway.cycle.bind_check import BindCheck
from gateway.cycle.claims import Claims
from gateway.cycle.filtering import FilterPhase
from gateway.cycle.queue import CycleQueue
from gateway.cycle.recheck import Recheck
from gateway.cycle.row_index import RowIndex
from gateway.cycle.runner import CycleRunner
from gateway.cycle.scoring import ScorePhase
from gateway.cycle.sharding import Sharding
from gateway.decisions.cycle_states import CycleStates
from gateway.decisions.hint import hint
from gateway.decisions.log import DecisionLog
from gateway.decisions.rejected import RejectedPods
from gateway.decisions.serving import decision_route
from gateway.edge import Edge, make_app, run_edge
from gateway.handover import hand_over
from gateway.health import readiness_checks, readiness_notes
from gateway.leadership import Leadership, make_leadership
from gateway.metrics import ClusterCollector, CycleMetrics
from gateway.policy.policy import PolicyHolder
from gateway.policy.reload import PolicyReloader, ReloadMetrics
from gateway.replicas.feed import StateFeed
from gateway.replicas.metrics import SessionFamilies, SessionMetrics
from gateway.replicas.pool import ReplicaPool
from gateway.replicas.rollout import Rollout
from gateway.replicas.service import BINDER, FILTER, SCORER, ServiceKind
from gateway.replicas.session import ReportRetry, Session, ignore_retry
from gateway.settings import GatewaySettings
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, connect
from moorage_host.kube.access import Access
from moorage_host.policy import default_document, parse, read
from moorage_host.process.admin import address, admin_server, cause_of
from moorage_host.process.lifecycle import announce, process
from moorage_host.process.phase import Phase
from moorage_host.rpc.channel import require_reachable
from moorage_host.tls.security import Security, securing


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway that answers; addresses are "host:port"."""

    extender: str
    admin: str


async def serve(settings: GatewaySettings) -> None:
    """Answer until SIGTERM or SIGINT, then drain.

    Raises:
        SystemExit: The user must change something; what it is, is on stderr in one line.
    """
    with process("gateway", settings) as stop:
        async with running(settings) as gateway:
            announce("serving", service="gateway", extender=gateway.extender, admin=gateway.admin)
            await stop.wait()


@asynccontextmanager
async def running(
    settings: GatewaySettings, registry: CollectorRegistry = REGISTRY
) -> AsyncIterator[Running]:
    """Answer until the block is left, then drain.

    Raises:
        ConfigurationError: A file, a port or the policy is wrong.
    """
    async with AsyncExitStack() as stack:
        security = await stack.enter_async_context(securing(settings))
        client = await connect(settings.kubeconfig)
        stack.push_async_callback(client.close)
        parts = _parts(client, settings, registry, security)
        stack.push_async_callback(parts.binding.close)
        await stack.enter_async_context(_background(parts, settings))
        stack.push_async_callback(parts.queue.drain)
        phase = Phase()
        checks = readiness_checks(
            cluster=parts.cluster,
            policy=parts.policy,
            filters=parts.filters,
            scorers=parts.scorers,
            term=parts.leadership.term,
            max_cache_age=settings.max_cache_age,
            max_interruption=settings.max_interruption,
        )
        admin = await stack.enter_async_context(
            admin_server(
                settings,
                checks={"serving": phase.problem, **checks},
                notes={
                    "tls": security.note,
                    **readiness_notes(
                        parts.reloader,
                        [
                            each.background_problems
                            for each in (parts.filters, parts.scorers, parts.binding)
                        ],
                        parts.leadership.barriers,
                    ),
                },
                routes=[_decision_route(client, parts)],
                security=security,
                reviewer=Access(client, ttl=settings.admin_token_ttl),
                registry=registry,
            )
        )
        edge = await stack.enter_async_context(_edge(parts, settings, security, registry))
        phase.name = "serving"
        yield Running(extender=address(settings.extender_host, edge.port), admin=admin)
        if not await hand_over(parts.leadership.election, edge.app, settings):
            phase.name = "shutting down"
            await asyncio.sleep(settings.shutdown_delay)
        phase.name = "shutting down"


@asynccontextmanager
async def _edge(
    parts: "_Parts",
    settings: GatewaySettings,
    security: Security,
    registry: CollectorRegistry,
) -> AsyncIterator[Edge]:
    host, port = settings.extender_host, settings.extender_port
    async with AsyncExitStack() as stack:
        app = make_app(parts.cycles, settings, registry)
        try:
            edge = await stack.enter_async_context(run_edge(app, host, port, security))
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {address(host, port)} for kube-scheduler: {cause_of(error)}; "
                "choose another --extender-port or --extender-host"
            ) from error
        yield edge


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    cluster: Cluster
    policy: PolicyHolder
    filters: ReplicaPool
    scorers: ReplicaPool
    binding: Binding
    retries: Retries
    snapshots: BinderSnapshots
    decisions: DecisionLog
    queue: CycleQueue
    cycles: CycleRunner
    reloader: PolicyReloader | None
    leadership: Leadership


def _parts(
    client: KubeClient,
    settings: GatewaySettings,
    registry: CollectorRegistry,
    security: Security,
) -> _Parts:
    for target in (*settings.filter, *settings.scorer, settings.binder):
        require_reachable(target, security)
    state = ClusterState(
        assumed_ttl=settings.assumed_pod_ttl,
        claim_ttl=settings.claim_ttl,
        ended_pods=settings.ended_pods,
        kept_changes=settings.kept_changes,
    )
    cluster = Cluster(
        client,
        state,
        registry,
        max_object_bytes=settings.max_object_bytes,
        max_age=settings.max_cache_age,
        limits=ReflectorLimits(
            silence=settings.watch_silence,
            list_timeout=settings.watch_list_time,
            outage_maximum=settings.watch_outage_wait,
            backoff_maximum=settings.watch_longest_wait,
        ),
    )

    def follow(policy: PolicyHolder) -> None:
        cluster.kinds.need(policy, policy.reads("filter", "score"))
        read = frozenset(policy.reads("bind")) if policy.binders_read_snapshot else None
        snapshots.need(read)

    snapshots = BinderSnapshots(lambda: pool(BINDER, (settings.binder,), math.inf))

    file = settings.config
    text = read(file) if file else ""
    policy = PolicyHolder(parse(text, str(file)) if file else default_document(), follow)
    registry.register(ClusterCollector(lambda: state.counts, cluster.ages))
    feed = StateFeed(state)
    sessions, metrics = SessionFamilies(registry), CycleMetrics(registry)

    queue = CycleQueue()

    def pool(
        kind: ServiceKind,
        targets: tuple[str, ...],
        longest_wait: float,
        retry: ReportRetry = ignore_retry,
    ) -> ReplicaPool:
        return ReplicaPool(
            kind,
            targets,
            feed=feed,
            policy=policy,
            cluster=cluster,
            objects=cluster.kinds,
            limits=settings,
            metrics=SessionMetrics(sessions, kind.name),
            security=security,
            wait_until_idle=queue.wait_until_idle,
            longest_wait=longest_wait,
            retry=retry,
        )

    leadership = make_leadership(
        settings, client, cluster, queue.between_cycles, registry, security
    )
    cycle_states = CycleStates(settings.cycle_state_memory)
    rejected = RejectedPods(settings.retry_pods)
    connection = BinderConnection(settings.binder, security)
    settling = Settling(client, state, metrics, settings.unknown_bind_wait)
    binding = Binding(
        connection,
        state,
        policy,
        cycle_states,
        snapshots.generation,
        term=leadership.term,
        settling=settling,
        unseen=UnseenPods(state, settings.unseen_pods),
    )
    retries = Retries(connection, rejected, state, RetryMetrics(registry))
    filters = pool(FILTER, settings.filter, settings.filter_wait, retries.ask)
    scorers = pool(SCORER, settings.scorer, settings.scorer_wait)
    index = RowIndex(state)
    decisions = DecisionLog(
        pods=settings.decision_pods,
        attempts=settings.decision_attempts,
        verdicts=settings.decision_verdicts,
    )
    filter_phase = FilterCache(
        FilterPhase(filters, index, Sharding(settings), metrics),
        state,
        policy,
        limit=settings.cache_pods,
        verify_share=settings.cache_verify_share,
    )
    score_phase = ScoreCache(
        ScorePhase(scorers, index, Sharding(settings), metrics, top=settings.decision_top),
        state,
        policy,
        limit=settings.cache_pods,
        top=settings.decision_top,
        verify_share=settings.cache_verify_share,
    )
    cycles = CycleRunner(
        term=leadership.term,
        cluster=cluster,
        policy=policy,
        queue=queue,
        filter_phase=filter_phase,
        score_phase=score_phase,
        recheck=Recheck(state, filter_phase, settings.recheck_time),
        claims=Claims(state, policy, score_phase, cycle_states, metrics, settings.unknown_pod_wait),
        bind_check=BindCheck(
            state=state,
            policy=policy,
            phase=filter_phase,
            queue=queue,
            metrics=metrics,
            pod=binding.unseen.pod,
            is_stale=cluster.is_stale,
            unknown_pod_wait=settings.unknown_pod_wait,
        ),
        binding=binding,
        decisions=decisions,
        cycle_states=cycle_states,
        rejected=rejected,
        metrics=metrics,
    )

    def rollout(pool: ReplicaPool, limits: GatewaySettings) -> Rollout:
        counted = SessionMetrics(sessions, pool.kind.name)
        trial = partial(Session, pool.kind, feed, counted, security)
        return Rollout(pool, cluster.kinds, trial, greeting=limits.session_timeout)

    reloader = file and PolicyReloader(
        file,
        text,
        policy=policy,
        objects=cluster.kinds,
        rollouts=[rollout(filters, settings), rollout(scorers, settings)],
        between_cycles=queue.between_cycles,
        metrics=ReloadMetrics(registry),
    )
    return _Parts(
        cluster=cluster,
        policy=policy,
        filters=filters,
        scorers=scorers,
        binding=binding,
        retries=retries,
        snapshots=snapshots,
        decisions=decisions,
        queue=queue,
        cycles=cycles,
        reloader=reloader or None,
        leadership=leadership,
    )


@asynccontextmanager
async def _background(parts: _Parts, settings: GatewaySettings) -> AsyncIterator[None]:
    async with parts.cluster.following(), asyncio.TaskGroup() as group:
        tasks = [group.create_task(pool.run()) for pool in (parts.filters, parts.scorers)]
        binder = parts.binding.follow_plugins(settings.resolve_interval)
        tasks.append(group.create_task(binder))
        tasks.append(group.create_task(parts.binding.connection.follow_certificate()))
        tasks.append(group.create_task(parts.snapshots.run()))
        tasks.append(group.create_task(parts.leadership.run()))
        tasks.append(group.create_task(parts.binding.settling.run()))
        tasks.append(group.create_task(parts.retries.run(settings.retry_interval)))
        if parts.reloader is not None and settings.config_reload_interval:
            reloading = parts.reloader.run(settings.config_reload_interval)
            tasks.append(group.create_task(reloading))
        yield
        for task in tasks:
            task.cancel()


def _decision_route(client: KubeClient, parts: _Parts) -> web.RouteDef:
    async def hint_of(namespace: str, pod: str) -> str:
        resolved = parts.policy.resolved
        return await hint(client, resolved.profile_names if resolved else (), namespace, pod)

    state = parts.cluster.state
    return decision_route(parts.decisions, state.row_at, state.place_of, hint_of)
