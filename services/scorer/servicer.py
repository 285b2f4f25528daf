"""The scorer service on the wire: converts, runs, converts."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import grpc
import numpy as np
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from msgspec.structs import replace

from moorage import Nodes, Pod, ScorePlugin, Scores
from moorage.execution import PluginRun, Profile, Supervisor, joined_runs
from moorage.v1 import scorer_pb2 as pb
from moorage.v1 import types_pb2
from moorage.v1.replica_pb2 import CycleResult
from moorage.v1.scorer_pb2_grpc import ScorerServiceServicer, add_ScorerServiceServicer_to_server
from moorage_host.plugins.ranking import ScoreRun, best, compact, run_scores
from moorage_host.plugins.registry import Registry, load_registry
from moorage_host.plugins.replica import Engine
from moorage_host.rpc.adhoc import Chunks
from moorage_host.rpc.describe import report_runs
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.role import replica_service
from moorage_host.rpc.serve import ServiceDefinition
from moorage_host.rpc.session import Context, ReplicaServicer
from moorage_host.rpc.settings import CycleSettings
from services.scorer.engine import continued, run_normalization, run_shard
from services.scorer.plugins import BUILT_INS

TOTALS = np.dtype("<f4")
RAW = np.dtype("<f8")


class ScorerServicer(ReplicaServicer[ScoreRun], ScorerServiceServicer):
    """Scores: ranks nodes, all at once or shard by shard."""

    def engine(self, cycle: types_pb2.Cycle) -> Engine[ScoreRun]:
        """Return what scores all nodes or a shard of them, or normalises."""
        if cycle.shard:
            return partial(_score_shard, bitmap=cycle.shard)
        if cycle.raw:
            raw = {each.plugin: each.raw for each in cycle.raw}
            return partial(_normalize, raw=raw)
        return run_scores

    def encode(self, run: ScoreRun, result: CycleResult) -> Sequence[PluginRun]:
        """Fill in the totals and the opinions that make them up; of a shard, raw scores alone."""
        if run.totals is not None:
            result.totals = run.totals.astype(TOTALS).tobytes()
        for plugin, values in run.raw.items():
            result.scores.add(plugin=plugin, raw=values.astype(RAW, copy=False).tobytes())
        for opinion in run.scores:
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

    def create() -> ScorerServicer:
        if registry is not None:
            return ScorerServicer(registry, settings)
        return ScorerServicer(load_registry(ScorePlugin, BUILT_INS, settings.plugin), settings)

    method = "moorage.v1.ScorerService/Score"
    return replica_service(
        method, create, add_ScorerServiceServicer_to_server, settings, name="scorer"
    )
