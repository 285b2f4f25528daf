"""The filter service on the wire: converts, runs, converts."""

from collections.abc import Sequence

import numpy as np

from moorage import FilterPlugin
from moorage.execution import FilterRun, PluginRejection, PluginRun, Trial, joined_runs
from moorage.v1 import filter_pb2 as pb
from moorage.v1 import types_pb2
from moorage.v1.filter_pb2_grpc import FilterServiceServicer, add_FilterServiceServicer_to_server
from moorage.v1.replica_pb2 import CycleResult
from moorage_host.plugins.registry import Registry, load_registry
from moorage_host.plugins.replica import Engine
from moorage_host.rpc.adhoc import Chunks
from moorage_host.rpc.convert import set_duration
from moorage_host.rpc.describe import report_runs
from moorage_host.rpc.role import replica_service
from moorage_host.rpc.serve import ServiceDefinition
from moorage_host.rpc.session import Context, ReplicaServicer
from moorage_host.rpc.settings import CycleSettings
from services.filter.engine import joined_verdicts, run_filters
from services.filter.plugins import BUILT_INS

CODES = np.dtype("<u2")


class FilterServicer(ReplicaServicer[FilterRun], FilterServiceServicer):
    """Filters: splits nodes into feasible and rejected ones."""

    def engine(self, cycle: types_pb2.Cycle) -> Engine[FilterRun]:
        """Return what filters."""
        return run_filters

    def encode(self, run: FilterRun, result: CycleResult) -> Sequence[PluginRun]:
        """Fill in the verdicts."""
        if run.reasons:
            result.reasons.extend(map(_reason, run.reasons))
            if np.count_nonzero(run.codes):
                result.verdicts = run.codes.astype(CODES, copy=False).tobytes()
        if run.claimants:
            result.claimants.extend(run.claimants)
        if run.trial is not None:
            _fill_in(result.group, run.trial)
        return run.plugins

    async def run_chunks(self, chunks: Chunks[FilterRun]) -> FilterRun:
        """Filter the nodes of each chunk, as replicas do that get a shard each."""
        parts: list[FilterRun] = []
        for part in chunks.parts():
            parts.append(await chunks.run(run_filters, part))
            if parts[0].trial is not None and not chunks.is_one:
                return await chunks.run(run_filters)  # a group is placed on all nodes at once
        if len(parts) == 1:
            return parts[0]
        return joined_verdicts(parts, joined_runs([part.plugins for part in parts]))

    async def Filter(self, request: pb.FilterRequest, context: Context) -> pb.FilterResponse:
        """Filter nodes by name."""
        outcome = await self.adhoc(request, context.time_remaining())
        codes, names = outcome.run.codes.tolist(), outcome.names
        response = pb.FilterResponse(
            feasible=[name for name, code in zip(names, codes, strict=True) if not code],
            generation=outcome.generation,
            claimants=outcome.run.claimants,
        )
        if outcome.run.trial is not None:
            _fill_in(response.group, outcome.run.trial)
        reasons = [_reason(reason) for reason in outcome.run.reasons]
        await self.throttle.each(
            [(name, code) for name, code in zip(names, codes, strict=True) if code],
            lambda each: response.rejected.add(node=each[0], reason=reasons[each[1] - 1]),
        )
        report_runs(response, outcome.run.plugins)
        return response


def _reason(reason: PluginRejection) -> types_pb2.Reason:
    return types_pb2.Reason(
        plugin=reason.plugin,
        text=reason.text,
        unresolvable=reason.unresolvable,
        cured_by=reason.cured_by,
    )


def _fill_in(sent: types_pb2.GroupTrial, trial: Trial) -> None:
    """Fill in how a trial placement ended."""
    group = trial.group
    sent.plugin, sent.name = trial.plugin, group.name
    sent.members, sent.min_count = trial.members, max(group.min_count, 0)
    sent.on_nodes, sent.fitting = trial.on_nodes, trial.fitting
    sent.nodes.update(trial.nodes)
    sent.ahead, sent.topology_key, sent.domain = trial.ahead, group.topology_key, trial.domain
    sent.failing, sent.lacking = trial.failing, trial.lacking
    sent.lacking_free, sent.lacking_domain = trial.lacking_free, trial.lacking_domain
    sent.problem, sent.like, sent.more_nodes = trial.refusal, trial.like, trial.more_nodes
    for each in trial.reasons:
        sent.reasons.add(reason=each.reason, nodes=each.nodes, examples=each.examples)
    set_duration(sent.timeout, group.timeout)


def filter_service(
    settings: CycleSettings, registry: Registry | None = None
) -> ServiceDefinition[FilterServicer]:
    """Return how the service is made; without a *registry*, of the plugins that settings name."""

    def create() -> FilterServicer:
        if registry is not None:
            return FilterServicer(registry, settings)
        return FilterServicer(load_registry(FilterPlugin, BUILT_INS, settings.plugin), settings)

    method = "moorage.v1.FilterService/Filter"
    return replica_service(
        method, create, add_FilterServiceServicer_to_server, settings, name="filter"
    )
