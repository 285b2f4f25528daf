"""Connects the rooms of the gateway, and runs it. What is in a room, the room itself makes."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry

from gateway.binding.binders import Binders, BinderSnapshots
from gateway.binding.unknown import UnknownBinds, settled_binds
from gateway.cluster.cluster import Cluster, make_cluster
from gateway.cycle import Cycles, Judge, Rank
from gateway.decisions.decisions import Decisions, make_decisions
from gateway.decisions.routes import decision_routes, read_pod
from gateway.edge import Edge, run_edge
from gateway.inspector.inspector import Inspector, make_inspector
from gateway.journal.journal import Journal
from gateway.leadership import Leadership
from gateway.leadership.election import Election
from gateway.policy.policy import PolicyHolder
from gateway.replicas.feed import StateFeed
from gateway.replicas.filters import Filters
from gateway.replicas.kinds import FILTER, SCORER, ServiceKind, binder_of
from gateway.replicas.metrics import ReplicaMetrics, SessionMetrics
from gateway.replicas.reload import PolicyReloader, ReloadMetrics
from gateway.replicas.rollout import Rollout
from gateway.replicas.scorers import Scorers
from gateway.replicas.set import ReplicaSet
from gateway.scheduling.metrics import CycleMetrics
from gateway.scheduling.queue import CycleQueue
from gateway.scheduling.scheduler import Scheduler
from gateway.scheduling.tracing import TracedCycles, Tracer
from gateway.settings import GatewaySettings
from gateway.whatif.shadow import Shadows, make_shadows, shadow_route
from gateway.whatif.simulate import simulate_routes
from moorage.errors import ConfigurationError
from moorage_host.kube import KubeClient, connect
from moorage_host.kube.access import Access
from moorage_host.policy import default_document, parse, read
from moorage_host.process.admin import Check, address, admin_server, cause_of
from moorage_host.process.lifecycle import announce, process
from moorage_host.process.phase import Phase
from moorage_host.rpc.channel import require_reachable
from moorage_host.tls.security import Security, securing
from moorage_host.tracing.sink import span_sink
from moorage_host.tracing.span import SpanSink

QUIET_SECONDS = 1.0
"""When calls have stopped for so long, they go to the next gateway, and wait there."""


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
        spans = await stack.enter_async_context(span_sink("gateway", settings))
        client = await connect(settings.kubeconfig)
        stack.push_async_callback(client.close)
        rooms = _connect_rooms(client, settings, registry, security, spans)
        stack.push_async_callback(rooms.binders.binding.client.close)
        await stack.enter_async_context(_background(rooms, settings))
        stack.push_async_callback(rooms.queue.drain)
        phase = Phase()
        admin = await stack.enter_async_context(
            admin_server(
                settings,
                checks={"serving": phase.problem, **_readiness_checks(rooms, settings)},
                notes={"tls": security.note, **_readiness_notes(rooms)},
                routes=[
                    *decision_routes(
                        rooms.decisions,
                        rooms.cluster.state.bound_to,
                        partial(read_pod, client),
                        rooms.policy,
                    ),
                    shadow_route(rooms.shadows),
                    *rooms.inspector.routes,
                    *simulate_routes(
                        settings, rooms.cluster, rooms.policy, rooms.filters, rooms.scorers
                    ),
                ],
                security=security,
                reviewer=Access(client, ttl=settings.admin_token_ttl),
                registry=registry,
            )
        )
        edge = Edge(rooms.cycles, settings, registry, rooms.inspector.last_calls)
        port = await stack.enter_async_context(_listening(edge, settings, security))
        phase.name = "serving"
        yield Running(extender=address(settings.extender_host, port), admin=admin)
        if not await _hand_over(rooms.leadership.election, edge, settings):
            phase.name = "shutting down"
            await asyncio.sleep(settings.shutdown_delay)
        phase.name = "shutting down"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rooms:
    cluster: Cluster
    policy: PolicyHolder
    reloader: PolicyReloader | None
    filters: ReplicaSet
    scorers: ReplicaSet
    binders: Binders
    leadership: Leadership
    decisions: Decisions
    queue: CycleQueue
    shadows: Shadows
    cycles: Cycles
    journal: Sequence[Journal]
    inspector: Inspector


def _connect_rooms(
    client: KubeClient,
    settings: GatewaySettings,
    registry: CollectorRegistry,
    security: Security,
    spans: SpanSink | None,
) -> _Rooms:
    for target in (*settings.filter, *settings.scorer, settings.binder):
        require_reachable(target, security)

    def follow(policy: PolicyHolder) -> None:
        cluster.kinds.need(policy, policy.reads("filter", "score"))
        read = frozenset(policy.reads("bind")) if policy.binders_read_snapshot else None
        snapshots.need(read)

    text = read(settings.config) if settings.config else ""
    document = parse(text, str(settings.config)) if settings.config else default_document()
    policy, queue = PolicyHolder(document, follow), CycleQueue()
    cluster, decisions = make_cluster(client, settings, registry), make_decisions(settings)
    state = cluster.state
    unknown = UnknownBinds(client, state, settled_binds(registry), settings.unknown_bind_wait)
    leadership = Leadership(
        settings, client, cluster, queue.between_cycles, unknown.begin, registry, security
    )
    feed, families = StateFeed(state), ReplicaMetrics(registry)

    def replicas_of(kind: ServiceKind, targets: Sequence[str], **more: Any) -> ReplicaSet:
        return ReplicaSet(
            kind,
            targets,
            feed=feed,
            policy=policy,
            cluster=cluster,
            settings=settings,
            metrics=SessionMetrics(families, kind.name),
            security=security,
            wait_until_idle=queue.wait_until_idle,
            **more,
        )

    def binder_replicas() -> ReplicaSet:
        kind = binder_of(leadership.holder)
        return replicas_of(kind, (settings.binder,), longest_wait=math.inf)

    snapshots = BinderSnapshots(binder_replicas)
    binders = Binders(
        settings,
        state,
        policy,
        snapshots,
        unknown,
        decisions,
        leadership,
        registry,
        security,
    )
    filters = replicas_of(
        FILTER, settings.filter, longest_wait=settings.filter_wait, retry=binders.retries.ask
    )
    scorers = replicas_of(SCORER, settings.scorer, longest_wait=settings.scorer_wait)
    reloader = settings.config and PolicyReloader(
        settings.config,
        text,
        policy=policy,
        objects=cluster.kinds,
        rollouts=[Rollout(filters), Rollout(scorers)],
        between_cycles=queue.between_cycles,
        metrics=ReloadMetrics(registry),
    )
    shadows = make_shadows(settings, state, policy, queue, filters, scorers, registry)
    replicas = {"filter": filters, "score": scorers}
    journal = (
        [Journal(settings, cluster, policy, replicas, queue.between_cycles, registry)]
        if settings.journal
        else []
    )
    judge: Judge = Filters(filters, settings, families).ask
    rank: Rank = Scorers(scorers, settings, families).ask
    on_end = [decisions.arrays.ended, decisions.stream.ended, shadows.ended]
    on_bind = [decisions.stream.bound]
    for each in journal:
        on_end.append(each.ended)
        on_bind.append(each.bound)
    tracer = None
    if spans is not None:
        tracer = Tracer(spans, settings.trace_ratio)
        on_end.append(tracer.ended)
        judge, rank = tracer.judge(judge), tracer.rank(rank)
    cycles: Cycles = Scheduler(
        term=leadership.term,
        cluster=cluster,
        policy=policy,
        queue=queue,
        judge=judge,
        rank=rank,
        binding=binders.binding,
        log=decisions.log,
        cycle_states=decisions.cycle_states,
        rejected=decisions.rejected,
        on_end=on_end,
        on_bind=on_bind,
        metrics=CycleMetrics(registry),
        recheck_time=settings.recheck_time,
        unknown_pod_wait=settings.unknown_pod_wait,
    )
    if tracer is not None:
        cycles = TracedCycles(cycles, tracer, decisions.log)
    inspector = make_inspector(
        settings,
        cluster,
        policy,
        reloader or None,
        filters=filters,
        scorers=scorers,
        binders=binders,
        leadership=leadership,
        registry=registry,
        security=security,
    )
    return _Rooms(
        cluster=cluster,
        policy=policy,
        reloader=reloader or None,
        filters=filters,
        scorers=scorers,
        binders=binders,
        leadership=leadership,
        decisions=decisions,
        queue=queue,
        shadows=shadows,
        cycles=cycles,
        journal=journal,
        inspector=inspector,
    )


@asynccontextmanager
async def _background(rooms: _Rooms, settings: GatewaySettings) -> AsyncIterator[None]:
    work = [each.run() for each in (rooms.filters, rooms.scorers, rooms.binders, rooms.shadows)]
    work += [rooms.leadership.run(), rooms.inspector.timeline.run()]
    work += [each.run() for each in rooms.journal]
    if rooms.reloader is not None and settings.config_reload_interval:
        work.append(rooms.reloader.run(settings.config_reload_interval))
    async with rooms.cluster.following(), asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        yield
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def _listening(
    edge: Edge, settings: GatewaySettings, security: Security
) -> AsyncIterator[int]:
    host, port = settings.extender_host, settings.extender_port
    async with AsyncExitStack() as stack:
        try:
            bound = await stack.enter_async_context(run_edge(edge, host, port, security))
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {address(host, port)} for kube-scheduler: {cause_of(error)}; "
                "choose another --extender-port or --extender-host"
            ) from error
        yield bound


async def _hand_over(election: Election | None, edge: Edge, settings: GatewaySettings) -> bool:
    """Release the Lease once calls go elsewhere; return False if this process has none.

    The next gateway gets ready as soon as it sees that this one is leaving. Until calls go there,
    this one stays ready and answers them.
    """
    if election is None or not await election.leave():
        return False
    edge.draining = True
    await edge.until_calls_stop(QUIET_SECONDS, settings.shutdown_delay)
    await edge.until_answered(settings.http_timeout)
    await election.release()
    return True


def _readiness_checks(rooms: _Rooms, settings: GatewaySettings) -> Mapping[str, Check]:
    """Return what must hold before kube-scheduler's calls are worth sending here, by name."""
    return {
        "cache": lambda: rooms.cluster.problem(settings.max_interruption),
        "objects": rooms.cluster.objects_problem,
        "leader": lambda: rooms.leadership.term.problem or None,
        "policy": lambda: rooms.policy.problem or None,
        "filter": lambda: None if rooms.filters.ready else rooms.filters.problem,
        # Without scores pods are still placed; but the first scorer must have the state.
        "scorer": lambda: rooms.scorers.problem if rooms.scorers.is_filling else None,
    }


def _readiness_notes(rooms: _Rooms) -> Mapping[str, Check]:
    """Return what is noted about a gateway that may be ready, by name."""
    runners = (rooms.filters, rooms.scorers, rooms.binders.binding)

    def plugins() -> str | None:
        problems = (each for runner in runners for each in runner.background_problems())
        return "; ".join(problems) or None

    def scorer() -> str | None:
        if rooms.scorers.ready or rooms.scorers.is_filling:
            return None
        return f"pods are placed without scores: {rooms.scorers.problem}"

    return {
        "policy": lambda: rooms.reloader.note() if rooms.reloader else None,
        "scorer": scorer,
        "plugins": plugins,
        "binder": rooms.leadership.barriers.note,
        "journal": lambda: next((each.note() for each in rooms.journal), None),
    }
