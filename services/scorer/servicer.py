"""The scorer service on the wire: converts, runs, converts."""

from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

import grpc.aio
import numpy as np
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from moorage import Nodes, Pod, Scores
from moorage.execution import Profile, Supervisor
from moorage.v1 import scorer_pb2 as pb
from moorage.v1 import scorer_pb2_grpc
from moorage_host.plugins.ranking import best, compact
from moorage_host.plugins.registry import Registry
from moorage_host.plugins.replica import Engine
from moorage_host.rpc.convert import set_duration
from moorage_host.rpc.describe import keep_values, report_plugins
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.serve import ServiceDefinition
from moorage_host.rpc.sessions.by_hand import by_hand_lane
from moorage_host.rpc.sessions.service import CycleOutcome, CycleService
from moorage_host.rpc.sessions.servicer import CycleServicer
from moorage_host.rpc.sessions.session import Wire, run_session
from moorage_host.rpc.sessions.settings import CycleSettings
from services.scorer.by_hand import score_in_steps
from services.scorer.engine import ScoreRun, run_normalization, run_scores, run_shard

TOTALS = np.dtype("<f4")
RAW = np.dtype("<f8")

Context = grpc.aio.ServicerContext[Any, Any]


class ScorerServicer(CycleServicer[ScoreRun], scorer_pb2_grpc.ScorerServiceServicer):
    """Serves sessions of gateways, and people."""

    def __init__(self, registry: Registry, settings: CycleSettings | None = None) -> None:
        """Run the plugins of *registry* on sessions within the limits of *settings*."""
        super().__init__(CycleService(registry, score_in_steps, settings or CycleSettings()))

    def Session(
        self, request_iterator: AsyncIterator[pb.ScorerServiceSessionRequest], context: Context
    ) -> AsyncIterator[pb.ScorerServiceSessionResponse]:
        """Keep a gateway's state and answer its cycles."""
        return run_session(self.cycles, request_iterator, WIRE)

    async def Score(self, request: pb.ScoreRequest, context: Context) -> pb.ScoreResponse:
        """Score nodes by name."""
        outcome = await self.cycles.by_hand(request, context.time_remaining())
        response, run = pb.ScoreResponse(generation=outcome.generation), outcome.run
        if run.totals is not None:
            await self.cycles.pace.each(
                best(run.totals, len(run.totals)),
                lambda index: _add_node(response.nodes, outcome.names[index], run, index),
            )
        report_plugins(response.plugins, run.plugins)
        keep_values(response.cycle_state, run.plugins)
        return response

    async def FollowProblems(
        self, request: pb.ScorerServiceFollowProblemsRequest, context: Context
    ) -> AsyncIterator[pb.ScorerServiceFollowProblemsResponse]:
        """Report what fails in the background of plugins."""
        await context.send_initial_metadata(())
        async for problems in self.cycles.host.follow_problems():
            yield pb.ScorerServiceFollowProblemsResponse(problems=problems)

    async def ListPlugins(
        self, request: pb.ScorerServiceListPluginsRequest, context: Context
    ) -> pb.ScorerServiceListPluginsResponse:
        """List the plugins of the registry."""
        return pb.ScorerServiceListPluginsResponse(plugins=self.cycles.plugins())

    async def GetState(
        self, request: pb.ScorerServiceGetStateRequest, context: Context
    ) -> pb.ScorerServiceGetStateResponse:
        """Show the state that calls by hand use."""
        return await self.with_state(pb.ScorerServiceGetStateResponse(), request.node_names)


def _engine(request: pb.ScorerServiceSessionRequest) -> Engine[ScoreRun]:
    if request.shard:
        return partial(_score_shard, bitmap=request.shard)
    if request.raw:
        return partial(_normalize, raw={each.plugin: each.values for each in request.raw})
    return run_scores


async def _score_shard(
    profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor, *, bitmap: bytes
) -> ScoreRun:
    packed = np.frombuffer(bitmap, np.uint8)
    most = int(nodes.rows.max(initial=-1)) + 1  # a bitmap may be much longer
    bits = np.unpackbits(packed, bitorder="little", count=min(8 * len(packed), most))
    return await run_shard(profile, pod, nodes, supervisor, rows=np.flatnonzero(bits))


async def _normalize(
    profile: Profile,
    pod: Pod,
    nodes: Nodes,
    supervisor: Supervisor,
    *,
    raw: Mapping[str, bytes],
) -> ScoreRun:
    scores: dict[str, Scores] = {}
    for plugin, values in raw.items():
        if len(values) == RAW.itemsize * len(nodes):
            scores[plugin] = np.frombuffer(values, RAW)
        if plugin not in scores or not np.isfinite(scores[plugin]).all():
            raise CallError(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"raw scores of plugin {plugin}: send one finite number for each node",
            )
    return await run_normalization(profile, pod, nodes, supervisor, raw=scores)


def _encode(
    request: pb.ScorerServiceSessionRequest, outcome: CycleOutcome[ScoreRun], result: pb.ScoreResult
) -> None:
    run = outcome.run
    result.generation = outcome.generation
    if run.totals is not None:
        result.totals = run.totals.astype(TOTALS).tobytes()
    _add_best(result.top, outcome, request.top)
    report_plugins(result.plugins, run.plugins)
    keep_values(result.cycle_state, run.plugins)
    set_duration(result.duration, outcome.seconds)
    set_duration(result.node_duration, sum(each.node_seconds for each in run.plugins))
    for plugin, values in run.raw.items():
        result.raw.add(plugin=plugin, values=values.astype(RAW, copy=False).tobytes())
    for opinion in run.scores if request.all_scores else ():
        raw, normalized = compact(opinion.raw, opinion.normalized)
        result.scores.add(
            plugin=opinion.plugin,
            weight=opinion.weight,
            raw=raw.tobytes(),
            normalized=b"" if normalized is raw else normalized.tobytes(),
        )


def _add_best(
    nodes: RepeatedCompositeFieldContainer[pb.NodeScore],
    outcome: CycleOutcome[ScoreRun],
    count: int,
) -> None:
    """Add the best nodes to a message, best first; ties keep their order."""
    totals = outcome.run.totals
    if totals is None or count == 0:
        return
    for index in best(totals, count):
        _add_node(nodes, outcome.nodes.name(index), outcome.run, index)


def _add_node(
    nodes: RepeatedCompositeFieldContainer[pb.NodeScore], name: str, run: ScoreRun, index: int
) -> None:
    assert run.totals is not None  # noqa: S101 - who calls has looked
    plugins = nodes.add(node=name, total=run.totals.item(index)).plugins
    for scores in run.scores:
        plugins.add(
            plugin=scores.plugin,
            weight=scores.weight,
            raw=scores.raw.item(index),
            normalized=scores.normalized.item(index),
        )


WIRE = Wire(
    response=pb.ScorerServiceSessionResponse,
    engine=_engine,
    encode=_encode,
)


def scorer_service(
    settings: CycleSettings, create: Callable[[], ScorerServicer]
) -> ServiceDefinition[ScorerServicer]:
    """Return how the service is made: what *create* returns, with a lane for calls by hand."""
    service = "moorage.v1.ScorerService"
    return ServiceDefinition(
        name="scorer",
        grpc_name=service,
        create=create,
        register=scorer_pb2_grpc.add_ScorerServiceServicer_to_server,
        lane=by_hand_lane(service, "Score", settings),
    )
