"""Picks what a journal keeps of a cycle, in the event loop: only references, nothing is copied."""

from collections.abc import Iterator

from gateway.decisions.cycle import SchedulingCycle
from gateway.decisions.records import Decision
from gateway.journal.entries import EndedCycle
from moorage.v1 import journal_pb2 as pb


def ended_cycle(cycle: SchedulingCycle, number: int) -> EndedCycle:
    """Return a cycle that has ended as the entry of this number."""
    request, decision = cycle.request, cycle.decision
    record = decision.preempt or decision.filter
    rows = request.nodes.rows[1] if request.nodes.rows else None
    has_verdicts = cycle.verdicts is not None
    generation = decision.generation
    if cycle.scores is not None and not has_verdicts:
        generation = cycle.scores.generation
    return EndedCycle(
        id=number,
        kind=_kind(cycle),
        profile=request.profile,
        policy_revision=decision.policy_revision,
        epoch=decision.epoch,
        pod=request.pod,
        plugin=request.plugin,
        generation=generation,
        given=rows.given if rows else (),
        excluded_pods=request.excluded_pods,
        verdicts=cycle.verdicts,
        claimants=record.claimants if record else (),
        scores=cycle.scores,
        failures=list(_failures(decision)),
        claim=decision.claim.node if decision.claim else "",
        error=decision.error,
        unknown_nodes=record.unknown_nodes if record else 0,
        score_scale=decision.score.scale if decision.score else 0,
    )


def _kind(cycle: SchedulingCycle) -> pb.JournalCycleKind.ValueType:
    if cycle.decision.preempt is not None or cycle.request.excluded_pods:
        return pb.JOURNAL_CYCLE_KIND_PREEMPT
    if cycle.verdicts is None and cycle.scores is not None:
        return pb.JOURNAL_CYCLE_KIND_SCORE
    return pb.JOURNAL_CYCLE_KIND_FILTER


def _failures(decision: Decision) -> Iterator[str]:
    for phase in (decision.preempt, decision.filter, decision.score):
        for plugin in phase.plugins if phase else ():
            if plugin.failure:
                yield f"{plugin.plugin}: {plugin.failure}"
    if decision.score_error:
        yield f"scores: {decision.score_error}"
