"""What kube-scheduler asks and what it gets, without HTTP: the seam between edge and cycles.

`gateway.edge` reads requests into these calls and writes the outcomes; `gateway.cycle` answers
them. Neither knows the other.
"""

from gateway.calls.last_calls import LastCalls
from gateway.calls.node_set import GivenNode, NodeSet
from gateway.calls.outcomes import (
    BindCall,
    CallFailedError,
    Cycles,
    FilterOutcome,
    PreemptCall,
    PreemptOutcome,
    PrioritizeOutcome,
    StandsByError,
    Victims,
)
from gateway.calls.request import CycleRequest

__all__ = [
    "BindCall",
    "CallFailedError",
    "CycleRequest",
    "Cycles",
    "FilterOutcome",
    "GivenNode",
    "LastCalls",
    "NodeSet",
    "PreemptCall",
    "PreemptOutcome",
    "PrioritizeOutcome",
    "StandsByError",
    "Victims",
]
