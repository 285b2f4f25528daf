"""All that is kept of cycles, within limits of count and memory."""

from dataclasses import dataclass

from gateway.cycle.cycle_states import CycleStates
from gateway.decisions.arrays import KeptArrays
from gateway.decisions.log import DecisionLog
from gateway.decisions.stream import DecisionStream
from gateway.settings import GatewaySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What is kept of cycles.

    Attributes:
        log: What was decided about each pod, and why.
        arrays: What the newest attempts found out about each node.
        stream: Those who follow decisions.
        cycle_states: What plugins keep for binds to come.
    """

    log: DecisionLog
    arrays: KeptArrays
    stream: DecisionStream
    cycle_states: CycleStates


def make_decisions(settings: GatewaySettings) -> Decisions:
    """Return what keeps decisions, empty yet."""
    return Decisions(
        log=DecisionLog(
            pods=settings.decision_pods,
            attempts=settings.decision_attempts,
            memory=settings.decision_memory,
        ),
        arrays=KeptArrays(count=settings.decision_arrays, memory=settings.decision_array_memory),
        stream=DecisionStream(
            clients=settings.decision_clients, waiting=settings.decision_client_queue
        ),
        cycle_states=CycleStates(settings.cycle_state_memory),
    )
