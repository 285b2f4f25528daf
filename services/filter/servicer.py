"""The filter service on the wire: converts, runs, converts."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio
import numpy as np

from moorage.v1 import filter_pb2 as pb
from moorage.v1 import filter_pb2_grpc
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.convert import set_duration
from moorage_host.rpc.describe import keep_values, report_plugins
from moorage_host.rpc.serve import ServiceDefinition
from moorage_host.rpc.sessions.by_hand import by_hand_lane
from moorage_host.rpc.sessions.service import CycleOutcome, CycleService
from moorage_host.rpc.sessions.servicer import CycleServicer
from moorage_host.rpc.sessions.session import Wire, run_session
from moorage_host.rpc.sessions.settings import CycleSettings
from services.filter.by_hand import filter_in_steps
from services.filter.engine import FilterRun, PluginRejection, run_filters

CODES = np.dtype("<u2")

Context = grpc.aio.ServicerContext[Any, Any]


class FilterServicer(CycleServicer[FilterRun], filter_pb2_grpc.FilterServiceServicer):
    """Serves sessions of gateways, and people."""

    def __init__(self, registry: Registry, settings: CycleSettings | None = None) -> None:
        """Run the plugins of *registry* on sessions within the limits of *settings*."""
        super().__init__(CycleService(registry, filter_in_steps, settings or CycleSettings()))

    def Session(
        self, request_iterator: AsyncIterator[pb.FilterServiceSessionRequest], context: Context
    ) -> AsyncIterator[pb.FilterServiceSessionResponse]:
        """Keep a gateway's state and answer its cycles."""
        return run_session(self.cycles, request_iterator, WIRE)

    async def Filter(self, request: pb.FilterRequest, context: Context) -> pb.FilterResponse:
        """Filter nodes by name."""
        outcome = await self.cycles.by_hand(request, context.time_remaining())
        codes, names = outcome.run.codes.tolist(), outcome.names
        response = pb.FilterResponse(
            feasible=[name for name, code in zip(names, codes, strict=True) if not code],
            generation=outcome.generation,
            claimants=outcome.run.claimants,
        )
        reasons = [_reason(reason) for reason in outcome.run.reasons]
        await self.cycles.pace.each(
            [(name, code) for name, code in zip(names, codes, strict=True) if code],
            lambda each: response.rejected.add(node=each[0], reason=reasons[each[1] - 1]),
        )
        report_plugins(response.plugins, outcome.run.plugins)
        keep_values(response.cycle_state, outcome.run.plugins)
        return response

    async def FollowRetries(
        self, request: pb.FilterServiceFollowRetriesRequest, context: Context
    ) -> AsyncIterator[pb.FilterServiceFollowRetriesResponse]:
        """Report plugins that ask for another attempt on the pods that they rejected."""
        await context.send_initial_metadata(())
        async for plugin, reason in self.cycles.host.retries.follow():
            yield pb.FilterServiceFollowRetriesResponse(plugin=plugin, reason=reason)

    async def FollowProblems(
        self, request: pb.FilterServiceFollowProblemsRequest, context: Context
    ) -> AsyncIterator[pb.FilterServiceFollowProblemsResponse]:
        """Report what fails in the background of plugins."""
        await context.send_initial_metadata(())
        async for problems in self.cycles.host.follow_problems():
            yield pb.FilterServiceFollowProblemsResponse(problems=problems)

    async def ListPlugins(
        self, request: pb.FilterServiceListPluginsRequest, context: Context
    ) -> pb.FilterServiceListPluginsResponse:
        """List the plugins of the registry."""
        return pb.FilterServiceListPluginsResponse(plugins=self.cycles.plugins())

    async def GetState(
        self, request: pb.FilterServiceGetStateRequest, context: Context
    ) -> pb.FilterServiceGetStateResponse:
        """Show the state that calls by hand use."""
        return await self.with_state(pb.FilterServiceGetStateResponse(), request.node_names)


def _encode(
    _: pb.FilterServiceSessionRequest, outcome: CycleOutcome[FilterRun], result: pb.FilterResult
) -> None:
    run = outcome.run
    result.generation = outcome.generation
    if run.reasons:
        result.reasons.extend(map(_reason, run.reasons))
        if np.count_nonzero(run.codes):
            result.verdicts = run.codes.astype(CODES, copy=False).tobytes()
    report_plugins(result.plugins, run.plugins)
    keep_values(result.cycle_state, run.plugins)
    set_duration(result.duration, outcome.seconds)
    set_duration(result.node_duration, sum(each.node_seconds for each in run.plugins))
    if run.claimants:
        result.claimants.extend(run.claimants)


def _reason(reason: PluginRejection) -> pb.Reason:
    return pb.Reason(
        plugin=reason.plugin,
        text=reason.rejection.reason,
        unresolvable=reason.rejection.unresolvable,
    )


WIRE = Wire(
    response=pb.FilterServiceSessionResponse,
    engine=lambda _: run_filters,
    encode=_encode,
)


def filter_service(
    settings: CycleSettings, create: Callable[[], FilterServicer]
) -> ServiceDefinition[FilterServicer]:
    """Return how the service is made: what *create* returns, with a lane for calls by hand."""
    service = "moorage.v1.FilterService"
    return ServiceDefinition(
        name="filter",
        grpc_name=service,
        create=create,
        register=filter_pb2_grpc.add_FilterServiceServicer_to_server,
        lane=by_hand_lane(service, "Filter", settings),
    )
