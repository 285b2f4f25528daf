"""Puts the parts of this room together."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from gateway.binding.binding import Binding
from gateway.cluster.cluster import Cluster
from gateway.cycle.bind_check import BindCheck
from gateway.cycle.cache.filter_cache import FilterCache
from gateway.cycle.cache.score_cache import ScoreCache
from gateway.cycle.claims import Claims
from gateway.cycle.metrics import CycleMetrics
from gateway.cycle.phases.filtering import FilterPhase
from gateway.cycle.phases.row_index import RowIndex
from gateway.cycle.phases.scoring import ScorePhase
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
) -> CycleRunner:
    """Return what runs cycles, each phase with a cache before it."""
    all_scores = bool(settings.decision_arrays or observers)
    state, metrics, index = cluster.state, CycleMetrics(registry), RowIndex(cluster.state)
    filter_phase = FilterCache(
        FilterPhase(filters, index, Sharding(settings), metrics),
        state,
        policy,
        limit=settings.cache_pods,
        verify_share=settings.cache_verify_share,
    )
    score_phase = ScoreCache(
        ScorePhase(
            scorers,
            index,
            Sharding(settings),
            metrics,
            top=settings.decision_top,
            all_scores=all_scores,
        ),
        state,
        policy,
        limit=settings.cache_pods,
        top=settings.decision_top,
        verify_share=settings.cache_verify_share,
    )
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
        pod=binding.unseen.pod,
        read=binding.settling.read,
        is_stale=cluster.is_stale,
        unknown_pod_wait=settings.unknown_pod_wait,
    )
    return CycleRunner(
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
        observers=(*decisions.observers, *observers),
        metrics=metrics,
    )
