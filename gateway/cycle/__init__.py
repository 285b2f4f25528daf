"""What a scheduling cycle is: a pod, its nodes, and what is found out about them.

Only data: `gateway.scheduling` runs cycles, `gateway.replicas` finds verdicts and scores.

cycle         the one object of a cycle, from kube-scheduler's call to the records; binds
nodes         the nodes of a call, and where they stand in the state
answers       what filter and score plugins say of nodes, and what totals become
decision      the part of a cycle that is kept for people to ask about
cycle_states  what plugins keep between a cycle and its bind
"""

from gateway.cycle.cycle import (
    ANSWER_SECONDS,
    BindCall,
    CallFailedError,
    Cycle,
    Cycles,
    Judge,
    Rank,
    StandsByError,
)
from gateway.cycle.nodes import GivenNode, NodeSet

__all__ = [
    "ANSWER_SECONDS",
    "BindCall",
    "CallFailedError",
    "Cycle",
    "Cycles",
    "GivenNode",
    "Judge",
    "NodeSet",
    "Rank",
    "StandsByError",
]
