"""Connects the rooms of the gateway, and runs it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain

from aiohttp import web
from opentelemetry.trace import Tracer
from prometheus_client import REGISTRY, CollectorRegistry

from gateway.binding.binding import BindDispatcher
from gateway.binding.client import BinderClient
from gateway.binding.snapshots import BinderSnapshots
from gateway.binding.unknown import UnknownBinds, settled_binds
from gateway.cluster.cluster import make_cluster
from gateway.cycle import Cycles
from gateway.cycle.cycle_states import CycleStates
from gateway.decisions.advice import Surveyor
from gateway.decisions.explaining import Explainer, read_events, read_pod
from gateway.decisions.routes import DecisionRoutes, Decisions, group_route
from gateway.edge import Edge, run_edge
from gateway.edge.metrics import LastCalls
from gateway.inspector.assets import asset_routes
from gateway.inspector.nodes import node_routes
from gateway.inspector.policy import policy_route
from gateway.inspector.replicas import replica_route
from gateway.inspector.timeline import Timeline, plugin_route
from gateway.leadership import Leadership
from gateway.leadership.election import Election
from gateway.policy.policy import PolicyHolder
from gateway.replicas.cache import AnswerCache
from gateway.replicas.client import FilterClient, ScoreClient
from gateway.replicas.feed import StateFeed
from gateway.replicas.kinds import FILTER, SCORER, SHADOW_FILTER, SHADOW_SCORER, binder_of
from gateway.replicas.metrics import ReplicaMetrics
from gateway.replicas.reload import PolicyReloader, ReloadMetrics
from gateway.replicas.rollout import Rollout
from gateway.replicas.set import ReplicaSet
from gateway.scheduling.metrics import CycleMetrics
from gateway.scheduling.queue import CycleQueue
from gateway.scheduling.rejected import RejectedPods, retried_pods, try_again
from gateway.scheduling.scheduler import Scheduler
from gateway.scheduling.tracing import TracedCycles, Traces
from gateway.settings import GatewaySettings
from gateway.whatif.shadow import Shadows, shadow_route
from gateway.whatif.simulate import simulate_routes
from moorage_host.kube import KubeClient, connect
from moorage_host.kube.access import Access
from moorage_host.kube.events import EventWriter
from moorage_host.policy import default_document, parse, read
from moorage_host.process.admin import Check, address, admin_server
from moorage_host.process.lifecycle import Phase, announce, process
from moorage_host.rpc.channel import require_reachable
from moorage_host.tls.security import Security, securing
from moorage_host.tracing.sink import sending_spans

POLICY_OBJECT = {
    "apiVersion": "moorage.io/v1alpha1",
    "kind": "MoorageConfiguration",
    "name": "policy",
}
"""What Events about the policy are about."""

QUIET_SECONDS = 1.0
"""When calls have stopped for so long, they go to the next gateway, and wait there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGateway:
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
) -> AsyncIterator[RunningGateway]:
    """Answer until the block is left, then drain.

    Raises:
        ConfigurationError: A file, a port or the policy is wrong.
    """
    async with AsyncExitStack() as stack:
        security = await stack.enter_async_context(securing(settings))
        tracer = await stack.enter_async_context(sending_spans("gateway"))
        client = await connect(settings.kubeconfig)
        stack.push_async_callback(client.close)
        gateway = _Gateway(client, settings, registry, security, tracer)
        stack.push_async_callback(gateway.binding.client.close)
        await stack.enter_async_context(gateway.background())
        stack.push_async_callback(gateway.queue.drain)
        phase = Phase()
        admin = await stack.enter_async_context(
            admin_server(
                settings,
                checks={"serving": phase.problem, **gateway.checks()},
                notes={"tls": security.note, **gateway.notes()},
                routes=gateway.routes(),
                security=security,
                reviewer=Access(client, ttl=settings.admin_token_ttl),
                registry=registry,
            )
        )
        edge = Edge(gateway.cycles, settings, registry, gateway.last_calls)
        host, port = settings.extender_host, settings.extender_port
        port = await stack.enter_async_context(run_edge(edge, host, port, security))
        phase.name = "serving"
        yield RunningGateway(extender=address(host, port), admin=admin)
        edge.draining = True  # the next call of each connection goes to whoever is ready
        if not await _hand_over(gateway.leadership.election, edge, settings):
            phase.name = "shutting down"
            await asyncio.sleep(settings.shutdown_delay)
        phase.name = "shutting down"


class _Gateway:
    """The rooms of a gateway, connected in the order in which they need each other."""

    def __init__(
        self,
        client: KubeClient,
        settings: GatewaySettings,
        registry: CollectorRegistry,
        security: Security,
        tracer: Tracer | None,
    ) -> None:
        targets = (settings.filter, settings.shadow_filter, settings.scorer, settings.shadow_scorer)
        for target in (*chain(*targets), settings.binder):
            require_reachable(target, security)
        self._client, self._settings, self._security = client, settings, security
        text = read(settings.config) if settings.config else ""
        document = parse(text, str(settings.config)) if settings.config else default_document()
        self.policy = policy = PolicyHolder(document)
        self.queue = queue = CycleQueue()
        self.cluster = cluster = make_cluster(client, settings, registry)
        self.decisions = decisions = Decisions(settings)
        state, between_cycles = cluster.state, queue.between_cycles
        unknown = UnknownBinds(client, state, settled_binds(registry), settings.unknown_bind_wait)
        self.leadership = leadership = Leadership(
            settings, client, cluster, between_cycles, unknown.begin, registry, security
        )
        metrics = ReplicaMetrics(registry)
        replicas = partial(
            ReplicaSet,
            feed=StateFeed(state),
            policy=policy,
            cluster=cluster,
            settings=settings,
            families=metrics,
            security=security,
            wait_until_idle=queue.wait_until_idle,
        )
        kind = binder_of(leadership.holder)
        self._snapshots = snapshots = BinderSnapshots(lambda: replicas(kind, (settings.binder,)))
        cycle_states = CycleStates(settings.cycle_state_memory)
        self.binding = binding = BindDispatcher(
            BinderClient(settings.binder, security),
            state,
            policy,
            cycle_states,
            decisions.arrays,
            snapshots.generation,
            holder=leadership.holder,
            term=leadership.term,
            unknown=unknown,
            ran=metrics.bound,
        )
        policy.listeners.append(self._follow)
        self.rejected = rejected = RejectedPods(state, policy)
        policy.listeners.append(rejected.follow)
        self._retried = retried_pods(registry)
        own_filter, own_scorer = settings.shadow_filter, settings.shadow_scorer
        self.filters = filters = replicas(
            FILTER,
            settings.filter,
            longest_wait=settings.filter_wait,
            retry=rejected.ask,
            share="profiles" if own_filter else "all",
        )
        self.scorers = scorers = replicas(
            SCORER,
            settings.scorer,
            longest_wait=settings.scorer_wait,
            share="profiles" if own_scorer else "all",
        )
        filters_of_shadows = (
            replicas(SHADOW_FILTER, own_filter, share="shadows") if own_filter else filters
        )
        scorers_of_shadows = (
            replicas(SHADOW_SCORER, own_scorer, share="shadows") if own_scorer else scorers
        )
        self._events = EventWriter(client, leadership.holder, tries=8, first_pause=1.0)
        self.reloader: PolicyReloader | None = None
        if settings.config:
            self.reloader = PolicyReloader(
                settings.config,
                text,
                policy=policy,
                objects=cluster.kinds,
                rollouts=[Rollout(filters), Rollout(scorers)],
                between_cycles=between_cycles,
                pods=state.pods,
                report=partial(
                    self._events.report,
                    {**POLICY_OBJECT, "namespace": client.namespace},
                    action="Reload",
                    controller="moorage-gateway",
                ),
                metrics=ReloadMetrics(registry),
            )
        self.shadows = Shadows(
            settings,
            state,
            policy,
            queue,
            filters_of_shadows,
            scorers_of_shadows,
            registry,
        )
        cache = AnswerCache(
            policy,
            FilterClient(filters, settings, metrics),
            ScoreClient(scorers, settings, metrics),
            settings,
            metrics,
        )
        judge, rank = cache.judge, cache.rank
        observers = (decisions.arrays, decisions.stream, self.shadows)
        on_cycle_end = [each.on_cycle_end for each in observers]
        traces = Traces(tracer, settings.trace_ratio) if tracer is not None else None
        if traces is not None:
            on_cycle_end.append(traces.on_cycle_end)
            judge, rank = traces.phase("filter", judge), traces.phase("score", rank)
        scheduler = Scheduler(
            term=leadership.term,
            cluster=cluster,
            policy=policy,
            queue=queue,
            judge=judge,
            rank=rank,
            binding=binding,
            log=decisions.log,
            cycle_states=cycle_states,
            rejected=rejected,
            on_cycle_end=on_cycle_end,
            on_bind=[decisions.stream.bound],
            metrics=CycleMetrics(registry),
            recheck_time=settings.recheck_time,
            unknown_pod_wait=settings.unknown_pod_wait,
            group_bind_wait=settings.group_bind_wait,
        )
        self.reservations = scheduler.reservations
        self.cycles: Cycles = scheduler
        if traces is not None:
            self.cycles = TracedCycles(self.cycles, traces, decisions.log)
        self.timeline = Timeline(registry, interval=settings.inspector_interval)
        self.last_calls = LastCalls()

    def _follow(self, policy: PolicyHolder) -> None:
        """Watch the kinds that plugins read, and send the state to binders that need it."""
        self.cluster.kinds.need(policy, policy.reads("filter", "score"))
        kinds = frozenset(policy.reads("bind")) if policy.binders_read_snapshot else None
        self._snapshots.need(kinds)

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        """Follow the cluster, and keep replicas, binders, the term and the rest going."""
        settings, client = self._settings, self.binding.client
        parts = (self.leadership, self.filters, self.scorers, self.shadows, self.timeline)
        work = [each.run() for each in (*parts, self._snapshots, self.binding.unknown)]
        work += [
            self.binding.follow_plugins(settings.resolve_interval),
            client.follow_certificate(),
            try_again(
                *(self.rejected, client, self.leadership.term, self._retried),
                settings.retry_interval,
            ),
        ]
        if self.reloader is not None:
            work.append(self.reloader.run(settings.config_reload_interval))
            work.append(self._events.run())
        async with self.cluster.following(), asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
            yield
            for task in tasks:
                task.cancel()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the admin port."""
        pod_of = partial(read_pod, self._client)
        explainer = Explainer(
            log=self.decisions.log,
            arrays=self.decisions.arrays,
            state=self.cluster.state,
            pod_of=pod_of,
            events_of=partial(read_events, self._client),
            bind_of=self.binding.under_way,
            is_outdated=self.rejected.is_outdated,
            policy=self.policy,
            waiting=self.cluster.waiting,
            surveyor=Surveyor(self.cluster.state),
        )
        decisions = DecisionRoutes(decisions=self.decisions, explainer=explainer)
        return [
            *decisions.routes(),
            group_route(self.reservations.items),
            shadow_route(self.shadows),
            *asset_routes(),
            *node_routes(self.cluster.state),
            replica_route(
                self._settings,
                self.cluster,
                {"filter": self.filters, "scorer": self.scorers},
                self.leadership,
                self.last_calls,
                lambda: list(self.binding.plugin_problems()),
                self._security,
            ),
            policy_route(self.policy, self.reloader),
            plugin_route(self.timeline),
            *simulate_routes(
                self._settings, self.cluster, self.policy, self.filters, self.scorers, pod_of
            ),
        ]

    def checks(self) -> Mapping[str, Check]:
        """Return what must hold before kube-scheduler's calls are worth sending here, by name."""
        return {
            "cache": lambda: self.cluster.problem(),
            "objects": self.cluster.objects_problem,
            "leader": self.leadership.problem,
            "policy": lambda: self.policy.problem or None,
            "filter": lambda: None if self.filters.all else self.filters.why_none,
            "scorer": self._scorer_problem,
        }

    def notes(self) -> Mapping[str, Check]:
        """Return what is noted about a gateway that may be ready, by name."""
        return {
            "cache": self.cluster.note,
            "objects": self.cluster.objects_note,
            "policy": lambda: self.reloader.note() if self.reloader else None,
            "scorer": self._no_scores,
            "plugins": self._plugin_problems,
            "binder": self.leadership.barriers.note,
            "shadow": self.shadows.note,
        }

    def _plugin_problems(self) -> str | None:
        runners = (self.filters, self.scorers, self.binding)
        problems = (each for runner in runners for each in runner.plugin_problems())
        return "; ".join(problems) or None

    def _scorer_problem(self) -> str | None:
        """Return what keeps a gateway from beginning: the first scorer has no state, or refuses.

        Later pods are placed without scores: a gateway that gave up would place none.
        """
        scorers = self.scorers
        if scorers.all or scorers.code_epoch:
            return None
        return scorers.why_none if scorers.is_filling or scorers.refusals else None

    def _no_scores(self) -> str | None:
        if self.scorers.all or self.scorers.is_filling:
            return None
        return f"pods are placed without scores: {self.scorers.why_none}"


async def _hand_over(election: Election | None, edge: Edge, settings: GatewaySettings) -> bool:
    """Release the Lease once calls go elsewhere; return False if this process has none.

    The next gateway gets ready as soon as it sees that this one is leaving. Until calls go there,
    this one stays ready and answers them.
    """
    if election is None or not await election.leave():
        return False
    await edge.until_calls_stop(QUIET_SECONDS, settings.shutdown_delay)
    await edge.until_answered(settings.http_timeout)
    await election.release()
    return True
