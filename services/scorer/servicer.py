"""The scorer service on the wire: converts, runs, converts."""

from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any

import grpc.aio
import numpy as np

from moorage import Nodes, Pod, Scores
from moorage.registry import Registry
from moorage.rpc.convert import to_duration
from moorage.rpc.describe import node_states, object_counts, plugin_reports
from moorage.rpc.errors import CallError
from moorage.rpc.serve import Servicer
from moorage.rpc.session import CycleOutcome, CycleService, Wire, run_session
from moorage.runtime import Profile, Supervisor
from moorage.runtime.replica import Engine
from moorage.v1 import scorer_pb2 as pb
from moorage.v1 import scorer_pb2_grpc
from services.scorer.engine import ScoreRun, run_normalization, run_scores, run_shard

Context = grpc.aio.ServicerContext[Any, Any]


class ScorerServicer(Servicer, scorer_pb2_grpc.ScorerServiceServicer):
    """Serves sessions of gateways, and people."""

    def __init__(self, registry: Registry) -> None:
        """Run the plugins of *registry*."""
        self.cycles = CycleService(registry, run_scores)

    async def drain(self) -> None:
        """End the sessions."""
        await self.cycles.drain()

    async def stop(self) -> None:
        """Stop the plugins."""
        await self.cycles.close()

    async def Session(
        self, request_iterator: AsyncIterator[pb.ScorerServiceSessionRequest], context: Context
    ) -> AsyncIterator[pb.ScorerServiceSessionResponse]:
        """Keep a gateway's state and answer its cycles."""
        async for answer in run_session(self.cycles, request_iterator, WIRE):
            yield answer

    async def Score(self, request: pb.ScoreRequest, context: Context) -> pb.ScoreResponse:
        """Score nodes by name."""
        outcome = await self.cycles.by_hand(request, context.time_remaining())
        return pb.ScoreResponse(
            nodes=_best(outcome, len(outcome.nodes)),
            generation=outcome.generation,
            plugins=plugin_reports(outcome.run.plugins),
        )

    async def ListPlugins(
        self, request: pb.ScorerServiceListPluginsRequest, context: Context
    ) -> pb.ScorerServiceListPluginsResponse:
        """List the plugins of the registry."""
        return pb.ScorerServiceListPluginsResponse(plugins=self.cycles.plugins())

    async def GetState(
        self, request: pb.ScorerServiceGetStateRequest, context: Context
    ) -> pb.ScorerServiceGetStateResponse:
        """Show the latest session's state."""
        replica = self.cycles.latest
        return pb.ScorerServiceGetStateResponse(
            generation=replica.generation,
            policy_revision=replica.policy.revision,
            node_count=len(replica.snapshot),
            pod_count=replica.snapshot.pod_count,
            nodes=node_states(replica, request.node_names),
            object_counts=object_counts(replica),
        )


def _engine(request: pb.ScorerServiceSessionRequest) -> Engine[ScoreRun]:
    if request.shard:
        bits = np.unpackbits(np.frombuffer(request.shard, np.uint8), bitorder="little")
        return partial(run_shard, rows=np.flatnonzero(bits))
    if request.raw:
        return partial(
            _normalize, raw={r.plugin: np.frombuffer(r.values, "<f8") for r in request.raw}
        )
    return run_scores


async def _normalize(
    profile: Profile,
    pod: Pod,
    nodes: Nodes,
    supervisor: Supervisor,
    *,
    raw: Mapping[str, Scores],
) -> ScoreRun:
    for plugin, values in raw.items():
        if len(values) != len(nodes) or not np.isfinite(values).all():
            raise CallError(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"raw scores of plugin {plugin}: send one finite number for each node",
            )
    return await run_normalization(profile, pod, nodes, supervisor, raw=raw)


def _encode(
    request: pb.ScorerServiceSessionRequest, outcome: CycleOutcome[ScoreRun]
) -> pb.ScoreResult:
    totals = outcome.run.totals
    return pb.ScoreResult(
        cycle=request.cycle.id,
        generation=outcome.generation,
        totals=b"" if totals is None else totals.astype("<f4").tobytes(),
        top=_best(outcome, request.top),
        plugins=plugin_reports(outcome.run.plugins),
        duration=to_duration(outcome.seconds),
        node_duration=to_duration(sum(run.node_seconds for run in outcome.run.plugins)),
        raw=[
            pb.RawScores(plugin=plugin, values=values.astype("<f8").tobytes())
            for plugin, values in outcome.run.raw.items()
        ],
    )


def _best(outcome: CycleOutcome[ScoreRun], count: int) -> list[pb.NodeScore]:
    """Return the best nodes, best first; ties keep their order."""
    totals = outcome.run.totals
    if totals is None or count == 0:
        return []
    order: Iterable[int] = np.argsort(-totals, kind="stable")[:count].tolist()
    return [_node_score(outcome, i, float(totals[i])) for i in order]


def _node_score(outcome: CycleOutcome[ScoreRun], index: int, total: float) -> pb.NodeScore:
    return pb.NodeScore(
        node=outcome.nodes.name(index),
        total=total,
        plugins=[
            pb.PluginScore(
                plugin=scores.plugin,
                raw=scores.raw[index],
                normalized=scores.normalized[index],
                weight=scores.weight,
            )
            for scores in outcome.run.scores
        ],
    )


WIRE = Wire(
    response=pb.ScorerServiceSessionResponse,
    result=pb.ScoreResult,
    engine=_engine,
    encode=_encode,
)
