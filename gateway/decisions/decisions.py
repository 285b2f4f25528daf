"""Puts the parts of this room together."""

from dataclasses import dataclass

from gateway.decisions.cycle_states import CycleStates
from gateway.decisions.log import DecisionLog
from gateway.decisions.rejected import RejectedPods
from gateway.settings import GatewaySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What is kept of cycles.

    Attributes:
        log: What was decided about each pod, and why.
        cycle_states: What plugins keep for binds to come.
        rejected: Pods that plugins may ask to try again.
    """

    log: DecisionLog
    cycle_states: CycleStates
    rejected: RejectedPods


def make_decisions(settings: GatewaySettings) -> Decisions:
    """Return what keeps decisions, empty yet."""
    return Decisions(
        log=DecisionLog(
            pods=settings.decision_pods,
            attempts=settings.decision_attempts,
            verdicts=settings.decision_verdicts,
        ),
        cycle_states=CycleStates(settings.cycle_state_memory),
        rejected=RejectedPods(settings.retry_pods),
    )
