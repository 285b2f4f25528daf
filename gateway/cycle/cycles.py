"""Puts the parts of this room together."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from gateway.binding.binding import Binding
from gateway.calls import Cycles
from gateway.cluster.cluster import Cluster
from gateway.cycle.bind_check import BindCheck
from gateway.cycle.claims import Claims
from gateway.cycle.metrics import CycleMetrics
from gateway.cycle.phases.filtering import FilterPhase, FilterPhaseResult
from gateway.cycle.phases.phase import Phase
from gateway.cycle.phases.row_index import RowIndex
from gateway.cycle.phases.scoring import ScorePhase, ScorePhaseResult
from gateway.cycle.phases.sharding import Sharding
from gateway.cycle.queue import CycleQueue
from gateway.cycle.recheck import Recheck
from gateway.cycle.runner import CycleRunner
from gateway.decisions.cycle import CycleObserver
from gateway.decisions.decisions import Decisions
from gateway.leadership.term import Term
from gateway.policy.policy import PolicyHolder
from gateway.replicas.pool import ReplicaPool
from gateway.settings import GatewaySettings
from gateway.tracing.cycles import TracedCycles
from gateway.tracing.phases import TracedPhase
from moorage_host.tracing.span import SpanSink


def make_cycles(
    settings: GatewaySettings,
    cluster: Cluster,
    policy: PolicyHolder,
    *,
    queue: CycleQueue,
    filters: ReplicaPool,
    scorers: ReplicaPool,
    binding: Binding,
    decisions: Decisions,
    observers: Sequence[CycleObserver] = (),
    term: Term,
    registry: CollectorRegistry,
    spans: SpanSink | None = None,
) -> Cycles:
    """Return what runs cycles, some traced to *spans*."""
    all_scores = bool(settings.decision_arrays or observers)
    state, metrics, index = cluster.state, CycleMetrics(registry), RowIndex(cluster.state)
    filter_phase: Phase[FilterPhaseResult] = FilterPhase(
        filters, index, Sharding(settings), metrics
    )
    score_phase: Phase[ScorePhaseResult] = ScorePhase(
        scorers,
        index,
        Sharding(settings),
        metrics,
        top=settings.decision_top,
        all_scores=all_scores,
    )
    traced = None
    if spans is not None:
        traced = TracedCycles(spans, settings.trace_ratio, decisions.log)
        observers = (*observers, traced)
        filter_phase = TracedPhase(filter_phase, "filter", spans)
        score_phase = TracedPhase(score_phase, "score", spans)
    claims = Claims(
        state,
        policy,
        score_phase,
        decisions.cycle_states,
        metrics,
        settings.unknown_pod_wait,
    )
    bind_check = BindCheck(
        state=state,
        policy=policy,
        phase=filter_phase,
        queue=queue,
        metrics=metrics,
        pod=binding.pods_ahead.pod,
        read=binding.unknown.read,
        is_stale=cluster.is_stale,
        unknown_pod_wait=settings.unknown_pod_wait,
    )
    runner = CycleRunner(
        term=term,
        cluster=cluster,
        policy=policy,
        queue=queue,
        filter_phase=filter_phase,
        score_phase=score_phase,
        recheck=Recheck(state, filter_phase, settings.recheck_time),
        claims=claims,
        bind_check=bind_check,
        binding=binding,
        decisions=decisions.log,
        cycle_states=decisions.cycle_states,
        rejected=decisions.rejected,
        observers=(metrics, *decisions.observers, *observers),
        metrics=metrics,
    )
    return traced.around(runner) if traced is not None else runner
