"""The scorer service on the wire: converts, runs, converts."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import grpc.aio
import numpy as np
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from msgspec.structs import replace

from moorage import Nodes, Pod, ScorePlugin, Scores
from moorage.execution import PluginRun, Profile, Supervisor, joined_runs
from moorage.v1 import scorer_pb2 as pb
from moorage.v1 import scorer_pb2_grpc
from moorage_host.plugins.ranking import ScoreRun, best, compact, run_scores
from moorage_host.plugins.registry import Registry, load_registry
from moorage_host.plugins.replica import Engine
from moorage_host.rpc.adhoc import Chunks
from moorage_host.rpc.describe import report_runs
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.serve import ServiceDefinition
from moorage_host.rpc.session import CycleServicer
from moorage_host.rpc.settings import CycleSettings, adhoc_limit
from services.scorer.engine import continued, run_normalization, run_shard
from services.scorer.plugins import BUILT_INS

TOTALS = np.dtype("<f4")
RAW = np.dtype("<f8")

Context = grpc.aio.ServicerContext[Any, Any]


class ScorerServicer(CycleServicer[ScoreRun], scorer_pb2_grpc.ScorerServiceServicer):
    """Serves sessions of gateways, and people."""

    phase = "score"
    response = pb.ScorerServiceSessionResponse

    def __init__(self, registry: Registry, settings: CycleSettings | None = None) -> None:
        """Run the plugins of *registry* on sessions within the limits of *settings*."""
        super().__init__(registry, settings or CycleSettings())

    def engine(self, request: pb.ScorerServiceSessionRequest) -> Engine[ScoreRun]:
        """Return what scores all nodes or a shard of them, or normalises."""
        if request.shard:
            return partial(_score_shard, bitmap=request.shard)
        if request.raw:
            raw = {each.plugin: each.values for each in request.raw}
            return partial(_normalize, raw=raw)
        return run_scores

    def encode(
        self,
        request: pb.ScorerServiceSessionRequest,
        nodes: Nodes,
        run: ScoreRun,
        result: pb.ScoreResult,
    ) -> Sequence[PluginRun]:
        """Fill in the totals, and the scores that make them up as far as they are asked for."""
        totals = run.totals
        if totals is not None:
            result.totals = totals.astype(TOTALS).tobytes()
            if request.top:
                indices = best(totals, request.top)
                _add_nodes(result.top, nodes.names_at(indices), run, indices)
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
        return run.plugins

    async def run_chunks(self, chunks: Chunks[ScoreRun]) -> ScoreRun:
        """Score the nodes of each chunk, as replicas do that get a shard each; then normalise."""
        if chunks.is_one:
            return await chunks.run(run_scores)
        shards = [await chunks.run(partial(_score_part, part=part)) for part in chunks.parts()]
        agreed = [name for name in shards[0].raw if all(name in shard.raw for shard in shards)]
        raw = {name: np.concatenate([shard.raw[name] for shard in shards]) for name in agreed}
        ranked = await chunks.run(partial(run_normalization, raw=raw))
        plugins = joined_runs([shard.plugins for shard in shards])
        return replace(ranked, plugins=continued(plugins, ranked.plugins))

    def Session(
        self, request_iterator: AsyncIterator[pb.ScorerServiceSessionRequest], context: Context
    ) -> AsyncIterator[pb.ScorerServiceSessionResponse]:
        """Keep a gateway's state and answer its cycles."""
        return self.session(request_iterator)

    async def Score(self, request: pb.ScoreRequest, context: Context) -> pb.ScoreResponse:
        """Score nodes by name."""
        outcome = await self.adhoc(request, context.time_remaining())
        response, run = pb.ScoreResponse(generation=outcome.generation), outcome.run
        if run.totals is not None:
            await self.throttle.each(
                best(run.totals, len(run.totals)),
                lambda at: _add_nodes(response.nodes, (outcome.names[at],), run, (at,)),
            )
        report_runs(response, run.plugins)
        return response

    async def FollowProblems(
        self, request: pb.ScorerServiceFollowProblemsRequest, context: Context
    ) -> AsyncIterator[pb.ScorerServiceFollowProblemsResponse]:
        """Report what fails in the background of plugins."""
        await context.send_initial_metadata(())
        async for problems in self.host.follow_problems():
            yield pb.ScorerServiceFollowProblemsResponse(problems=problems)

    async def ListPlugins(
        self, request: pb.ScorerServiceListPluginsRequest, context: Context
    ) -> pb.ScorerServiceListPluginsResponse:
        """List the plugins of the registry."""
        return pb.ScorerServiceListPluginsResponse(plugins=self.described())

    async def GetState(
        self, request: pb.ScorerServiceGetStateRequest, context: Context
    ) -> pb.ScorerServiceGetStateResponse:
        """Show the state that ad-hoc calls use."""
        return await self.with_state(pb.ScorerServiceGetStateResponse(), request.node_names)


async def _score_part(
    profile: Profile, pod: Pod, nodes: Nodes, supervisor: Supervisor, *, part: slice
) -> ScoreRun:
    return await run_shard(profile, pod, nodes, supervisor, rows=nodes.rows[part])


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


def _add_nodes(
    nodes: RepeatedCompositeFieldContainer[pb.NodeScore],
    names: Iterable[str],
    run: ScoreRun,
    indices: Sequence[int],
) -> None:
    """Add the nodes at some places, with all that makes up their totals."""
    assert run.totals is not None  # noqa: S101 - who calls has looked
    for name, index in zip(names, indices, strict=True):
        plugins = nodes.add(node=name, total=run.totals.item(index)).plugins
        for scores in run.scores:
            plugins.add(
                plugin=scores.plugin,
                weight=scores.weight,
                raw=scores.raw.item(index),
                normalized=scores.normalized.item(index),
            )


def scorer_service(
    settings: CycleSettings, registry: Registry | None = None
) -> ServiceDefinition[ScorerServicer]:
    """Return how the service is made; without a *registry*, of the plugins that settings name."""
    service = "moorage.v1.ScorerService"

    def create() -> ScorerServicer:
        plugins = (
            load_registry(ScorePlugin, BUILT_INS, settings.plugin) if registry is None else registry
        )
        return ScorerServicer(plugins, settings)

    return ServiceDefinition(
        name="scorer",
        grpc_name=service,
        create=create,
        register=scorer_pb2_grpc.add_ScorerServiceServicer_to_server,
        limit=adhoc_limit(service, "Score", settings),
    )
