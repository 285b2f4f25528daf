"""The cache before the filter phase: verdicts by node."""

from collections.abc import Sequence

import numpy as np

from gateway.calls import CycleRequest
from gateway.calls.node_set import NodeRows
from gateway.cluster.state import ClusterState
from gateway.cycle.cache.node_values import NodeValues
from gateway.cycle.cache.phase_cache import PhaseCache
from gateway.cycle.phases.filtering import FilterPhase, FilterPhaseResult, to_result
from gateway.cycle.phases.merging import ReasonKey, ShardVerdicts, to_messages, translated
from gateway.policy.dependencies import FilterDependencies
from gateway.policy.policy import PolicyHolder
from moorage.plugin.scope import Scope
from moorage.v1 import filter_pb2

REASON_LIMIT = 1000
"""Reasons that are kept in one entry; a plugin may use another one each time."""


class FilterEntry:
    """The verdicts on pods with one signature; see `gateway.cycle.cache.phase_cache.Entry`."""

    def __init__(self, state: ClusterState, scope: Scope) -> None:
        self.source = ""
        self.version = ""
        self.has_failed = False
        self.is_usable = True
        self._state = state
        self._scope = scope
        self._clear()

    def _clear(self) -> None:
        self.values = NodeValues(self._state, 1, np.uint16, self._scope)
        self._reasons: dict[ReasonKey, int] = {}
        self._result = filter_pb2.FilterResult()

    def learn(self, verdicts: ShardVerdicts, generation: int) -> bool:
        """Add verdicts; not if there are too many reasons, in which case the entry is cleared."""
        if len(self._reasons) + len(verdicts.result.reasons) > REASON_LIMIT:
            self._clear()
            return False
        codes = translated(verdicts, self._reasons)
        self.values.put(verdicts.rows.rows, codes, generation)
        # A report lacks the plugins that found no nodes left.
        reports = max(self._result.plugins, verdicts.result.plugins, key=len)
        self._result = filter_pb2.FilterResult(reasons=to_messages(self._reasons), plugins=reports)
        for report in self._result.plugins:  # these are of one cycle
            report.ClearField("duration")
            report.ClearField("note")
        return True

    def verdicts(self, rows: NodeRows) -> ShardVerdicts:
        """Return the verdicts on nodes, none of whose rows is stale."""
        codes = self.values.at(rows.rows)[0]
        counts = np.bincount(codes, minlength=len(self._reasons) + 1).tolist()
        return ShardVerdicts(self._reports(counts), rows, codes, counts, self.version)

    def _reports(self, counts: Sequence[int]) -> filter_pb2.FilterResult:
        """Return the reasons, and the plugins that would have run: none after the last node."""
        if counts[0]:
            return self._result
        rejecting = {r.plugin for r, n in zip(self._result.reasons, counts[1:], strict=True) if n}
        ran = list(self._result.plugins)
        while ran and ran[-1].plugin not in rejecting:
            ran.pop()
        return filter_pb2.FilterResult(reasons=self._result.reasons, plugins=ran)


class _Fetched:
    def __init__(self, result: FilterPhaseResult) -> None:
        self.result = result
        self.record = result.record
        self.rows = (result.verdicts.rows,)
        self.verdicts = result.verdicts
        self.version = result.verdicts.version
        self.has_cycle_state = bool(result.verdicts.result.cycle_state)


class FilterCache(PhaseCache[FilterEntry, _Fetched, FilterPhaseResult]):
    """Filters nodes."""

    name = "filter"

    def __init__(
        self,
        phase: FilterPhase,
        state: ClusterState,
        policy: PolicyHolder,
        *,
        limit: int,
        verify_share: float = 0.0,
    ) -> None:
        """See `PhaseCache`."""
        super().__init__(state, policy, limit=limit, verify_share=verify_share)
        self.phase: FilterPhase = phase

    async def _ask(self, request: CycleRequest) -> FilterPhaseResult:
        return await self.phase.run(request)

    async def _fetch(self, request: CycleRequest) -> _Fetched:
        return _Fetched(await self.phase.run(request))

    def _dependencies(self, profile: str) -> FilterDependencies | None:
        return self._policy.dependencies.filters.get(profile)

    def _new_entry(self, profile: str) -> FilterEntry:
        return FilterEntry(self._state, self._policy.dependencies.filters[profile].scope)

    def _learn(self, entry: FilterEntry, fetched: _Fetched, generation: int) -> bool:
        return entry.learn(fetched.verdicts, generation)

    def _answer(
        self, request: CycleRequest, entry: FilterEntry, rows: NodeRows
    ) -> FilterPhaseResult:
        return to_result(request, entry.verdicts(rows), self._state.generation)

    def _stale(self, request: CycleRequest, entry: FilterEntry) -> CycleRequest | None:
        """Return the whole request if a plugin may want a claim, as replicas decide on that."""
        stale = super()._stale(request, entry)
        claimants = self._policy.dependencies.filters[request.profile].claimants
        return request if stale is not None and claimants else stale

    def _may_answer(self, request: CycleRequest, result: FilterPhaseResult) -> bool:
        """Only replicas know whether a pod that fits somewhere has to claim its node."""
        claimants = self._policy.dependencies.filters[request.profile].claimants
        return not claimants or not len(result.outcome.feasible)

    def _difference(self, cached: FilterPhaseResult, fresh: FilterPhaseResult) -> str:
        before, now = _by_name(cached), _by_name(fresh)
        names = [name for name in before.keys() | now.keys() if before.get(name) != now.get(name)]
        if any(plugin.failure for plugin in fresh.record.plugins) or not names:
            return ""
        name = min(names)
        cached_reason, reason = before.get(name, "feasible"), now.get(name, "feasible")
        return f"{len(names)} verdicts, such as on {name}: cached {cached_reason}, now {reason}"


def _by_name(result: FilterPhaseResult) -> dict[str, str]:
    return {**result.outcome.failed, **result.outcome.unresolvable}
