"""What the servicers of filter and scorer have in common."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from moorage.v1 import filter_pb2, scorer_pb2
from moorage_host.process.admin import Check
from moorage_host.rpc.describe import node_state, object_counts
from moorage_host.rpc.serve import Servicer
from moorage_host.rpc.sessions.service import CycleService
from moorage_host.tracing.span import SpanSink

Run = TypeVar("Run")

StateResponse = TypeVar(
    "StateResponse",
    filter_pb2.FilterServiceGetStateResponse,
    scorer_pb2.ScorerServiceGetStateResponse,
)


class CycleServicer(Servicer, Generic[Run]):
    """Serves sessions of gateways, and people; inherit from this and from the generated class."""

    def __init__(self, cycles: CycleService[Run]) -> None:
        """Have *cycles* run them."""
        self.cycles = cycles

    def notes(self) -> Mapping[str, Check]:
        """Return what fails in the background of the plugins."""
        return {"plugins": self.cycles.host.background_note}

    def trace_to(self, sink: SpanSink | None) -> None:
        """Have spans of cycles that are traced sent."""
        self.cycles.spans = sink

    async def drain(self) -> None:
        """End the sessions, and the reports about plugins."""
        self.cycles.host.end_reports()
        await self.cycles.drain()

    async def stop(self) -> None:
        """Stop the plugins."""
        await self.cycles.close()

    async def with_state(self, response: StateResponse, node_names: Sequence[str]) -> StateResponse:
        """Return *response* with the state that calls by hand use, and these nodes in full.

        Raises:
            CallError: They are too many (INVALID_ARGUMENT), or one is unknown (NOT_FOUND).
        """
        self.cycles.check_count(len(node_names))
        replica = self.cycles.current
        response.generation = replica.generation
        response.policy_revision = replica.policy.revision
        response.node_count = len(replica.snapshot)
        response.pod_count = replica.snapshot.pod_count
        await self.cycles.pace.each(
            node_names, lambda name: response.nodes.append(node_state(replica, name))
        )
        response.object_counts.update(object_counts(replica))
        return response
