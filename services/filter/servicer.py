"""The filter service on the wire: converts, runs, converts."""

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import numpy as np

from moorage.registry import Registry
from moorage.rpc.convert import to_duration
from moorage.rpc.describe import node_states, object_counts, plugin_reports
from moorage.rpc.serve import Servicer
from moorage.rpc.session import CycleOutcome, CycleService, Wire, run_session
from moorage.v1 import filter_pb2 as pb
from moorage.v1 import filter_pb2_grpc
from services.filter.engine import FilterRun, PluginRejection, run_filters

Context = grpc.aio.ServicerContext[Any, Any]


class FilterServicer(Servicer, filter_pb2_grpc.FilterServiceServicer):
    """Serves sessions of gateways, and people."""

    def __init__(self, registry: Registry) -> None:
        """Run the plugins of *registry*."""
        self.cycles = CycleService(registry, run_filters)

    async def drain(self) -> None:
        """End the sessions."""
        await self.cycles.drain()

    async def stop(self) -> None:
        """Stop the plugins."""
        await self.cycles.close()

    async def Session(
        self, request_iterator: AsyncIterator[pb.FilterServiceSessionRequest], context: Context
    ) -> AsyncIterator[pb.FilterServiceSessionResponse]:
        """Keep a gateway's state and answer its cycles."""
        async for answer in run_session(self.cycles, request_iterator, WIRE):
            yield answer

    async def Filter(self, request: pb.FilterRequest, context: Context) -> pb.FilterResponse:
        """Filter nodes by name."""
        outcome = await self.cycles.by_hand(request, context.time_remaining())
        codes, names = outcome.run.codes, outcome.nodes.names
        return pb.FilterResponse(
            feasible=[names[i] for i in np.flatnonzero(codes == 0)],
            rejected=[
                pb.NodeRejection(node=names[i], reason=_reason(outcome.run.reasons[codes[i] - 1]))
                for i in np.flatnonzero(codes)
            ],
            generation=outcome.generation,
            plugins=plugin_reports(outcome.run.plugins),
            claimants=outcome.run.claimants,
        )

    async def ListPlugins(
        self, request: pb.FilterServiceListPluginsRequest, context: Context
    ) -> pb.FilterServiceListPluginsResponse:
        """List the plugins of the registry."""
        return pb.FilterServiceListPluginsResponse(plugins=self.cycles.plugins())

    async def GetState(
        self, request: pb.FilterServiceGetStateRequest, context: Context
    ) -> pb.FilterServiceGetStateResponse:
        """Show the latest session's state."""
        replica = self.cycles.latest
        return pb.FilterServiceGetStateResponse(
            generation=replica.generation,
            policy_revision=replica.policy.revision,
            node_count=len(replica.snapshot),
            pod_count=replica.snapshot.pod_count,
            nodes=node_states(replica, request.node_names),
            object_counts=object_counts(replica),
        )


def _encode(
    request: pb.FilterServiceSessionRequest, outcome: CycleOutcome[FilterRun]
) -> pb.FilterResult:
    run = outcome.run
    return pb.FilterResult(
        cycle=request.cycle.id,
        generation=outcome.generation,
        verdicts=run.codes.astype("<u2").tobytes() if run.codes.any() else b"",
        reasons=[_reason(reason) for reason in run.reasons],
        plugins=plugin_reports(run.plugins),
        duration=to_duration(outcome.seconds),
        node_duration=to_duration(sum(each.node_seconds for each in run.plugins)),
        claimants=run.claimants,
    )


def _reason(reason: PluginRejection) -> pb.Reason:
    return pb.Reason(
        plugin=reason.plugin,
        text=reason.rejection.reason,
        unresolvable=reason.rejection.unresolvable,
    )


WIRE = Wire(
    response=pb.FilterServiceSessionResponse,
    result=pb.FilterResult,
    engine=lambda _: run_filters,
    encode=_encode,
)
