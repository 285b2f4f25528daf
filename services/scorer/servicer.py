"""The scorer service on the wire: converts, runs, converts."""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import grpc.aio
import numpy as np
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from moorage import Nodes, Pod, Scores
from moorage.execution import Profile, Supervisor
from moorage.plugin.cycle_state import CYCLE_STATE_BYTES
from moorage.snapshot.snapshot import MAX_NODES
from moorage.v1 import scorer_pb2 as pb
from moorage.v1 import scorer_pb2_grpc
from moorage_host.plugins.ranking import best
from moorage_host.plugins.registry import Registry
from moorage_host.plugins.replica import Engine
from moorage_host.process.admin import Check
from moorage_host.rpc.convert import set_duration
from moorage_host.rpc.describe import keep_values, node_states, object_counts, report_plugins
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.serve import Servicer
from moorage_host.rpc.session import CycleOutcome, CycleService, Wire, run_session
from services.scorer.engine import ScoreRun, run_normalization, run_scores, run_shard

TOTALS = np.dtype("<f4")
RAW = np.dtype("<f8")

Context = grpc.aio.ServicerContext[Any, Any]


class ScorerServicer(Servicer, scorer_pb2_grpc.ScorerServiceServicer):
    """Serves sessions of gateways, and people."""

    def __init__(
        self,
        registry: Registry,
        *,
        cycle_state_bytes: int = CYCLE_STATE_BYTES,
        max_nodes: int = MAX_NODES,
    ) -> None:
        """Run the plugins of *registry* on sessions of at most *max_nodes* nodes.

        Each plugin may keep *cycle_state_bytes* in a cycle for its bind.
        """
        self.cycles = CycleService(
            registry, run_scores, cycle_state_bytes=cycle_state_bytes, max_nodes=max_nodes
        )

    def notes(self) -> Mapping[str, Check]:
        """Return what fails in the background of the plugins."""
        return {"plugins": self.cycles.host.background_note}

    async def drain(self) -> None:
        """End the sessions, and the reports about plugins."""
        self.cycles.host.end_reports()
        await self.cycles.drain()

    async def stop(self) -> None:
        """Stop the plugins."""
        await self.cycles.close()

    def Session(
        self, request_iterator: AsyncIterator[pb.ScorerServiceSessionRequest], context: Context
    ) -> AsyncIterator[pb.ScorerServiceSessionResponse]:
        """Keep a gateway's state and answer its cycles."""
        return run_session(self.cycles, request_iterator, WIRE)

    async def Score(self, request: pb.ScoreRequest, context: Context) -> pb.ScoreResponse:
        """Score nodes by name."""
        outcome = await self.cycles.by_hand(request, context.time_remaining())
        response = pb.ScoreResponse(generation=outcome.generation)
        _add_best(response.nodes, outcome, len(outcome.nodes))
        report_plugins(response.plugins, outcome.run.plugins)
        keep_values(response.cycle_state, outcome.run.plugins)
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
        return partial(_normalize, raw={each.plugin: _raw_scores(each) for each in request.raw})
    return run_scores


def _raw_scores(message: pb.RawScores) -> Scores:
    if len(message.values) % RAW.itemsize:
        raise _no_scores(message.plugin)
    return np.frombuffer(message.values, RAW)


def _no_scores(plugin: str) -> CallError:
    message = f"raw scores of plugin {plugin}: send one finite number for each node"
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, message)


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
            raise _no_scores(plugin)
    return await run_normalization(profile, pod, nodes, supervisor, raw=raw)


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
        plugins = nodes.add(node=outcome.nodes.name(index), total=totals.item(index)).plugins
        for scores in outcome.run.scores:
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
