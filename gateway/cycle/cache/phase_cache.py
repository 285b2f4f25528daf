"""The cache before a phase: replicas are asked only about nodes whose values are stale.

What plugins answered for a node holds for all equal pods until what the plugins depend on changes
(`Plugin.depends_on`). The cache has the interface of the phase that it stands before.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import structlog

from gateway.calls import CallFailedError, CycleRequest
from gateway.calls.node_set import NodeRows
from gateway.cluster.state import ClusterState
from gateway.cycle.cache.node_values import NodeValues
from gateway.cycle.cache.store import Store
from gateway.cycle.phases.phase import ReplicaPhase
from gateway.decisions.from_protobuf import mark_cached
from gateway.decisions.records import FilterRecord, PhaseName, ScoreRecord
from gateway.policy.dependencies import FilterDependencies, ScoreDependencies
from gateway.policy.policy import PolicyHolder
from moorage.plugin.scope import Scope

log = structlog.get_logger()


class Entry(Protocol):
    """What plugins answered for pods with one signature.

    Attributes:
        values: The answers by row.
        source: The pod that replicas were asked about last, as NAMESPACE/NAME.
        has_failed: Whether a plugin failed when replicas were asked last.
        is_usable: Whether answers can be put together from the values.
        version: That of the plugins that answered; empty before the first answer.
    """

    values: NodeValues[Any]
    source: str
    has_failed: bool
    is_usable: bool
    version: str


class CacheableResult(Protocol):
    """The result of a phase."""

    @property
    def record(self) -> FilterRecord | ScoreRecord:
        """The record for the decision."""


EntryT = TypeVar("EntryT", bound=Entry)
ResultT = TypeVar("ResultT", bound=CacheableResult)
ResultT_co = TypeVar("ResultT_co", bound=CacheableResult, covariant=True)


class Fetched(Protocol[ResultT_co]):
    """What replicas answered about the stale nodes."""

    @property
    def record(self) -> FilterRecord | ScoreRecord:
        """What replicas did."""

    @property
    def rows(self) -> Sequence[NodeRows]:
        """The nodes, by shard."""

    @property
    def result(self) -> ResultT_co | None:
        """The result of the phase, if the answer contains it."""

    @property
    def version(self) -> str:
        """The version of the plugins that answered."""

    @property
    def has_cycle_state(self) -> bool:
        """Whether a plugin keeps something for the bind; only replicas know that of each pod."""


FetchedT = TypeVar("FetchedT", bound=Fetched[Any])


class PhaseCache(ABC, Generic[EntryT, FetchedT, ResultT]):
    """Answers from the cache what it can, and has a phase answer the rest."""

    name: PhaseName
    phase: ReplicaPhase

    def __init__(
        self, state: ClusterState, policy: PolicyHolder, *, limit: int, verify_share: float
    ) -> None:
        """Cache pods with at most *limit* signatures; verify this share of the cached results."""
        self._state = state
        self._policy = policy
        self._store: Store[EntryT] = Store(limit)
        self._verify_share = verify_share

    async def run(self, request: CycleRequest) -> ResultT:
        """Return the result for the nodes of the request; see `Phase.run`."""
        entry = self._entry(request)
        if entry is None or not entry.is_usable:
            return await self._ask(request)
        if entry.has_failed:  # asking about some nodes first would most likely be in vain
            result = await self._ask(request)
            entry.has_failed = any(plugin.failure for plugin in result.record.plugins)
            return result
        source, fetched = entry.source, None
        stale = self._stale(request, entry)
        if stale is not None:
            fetched, is_cached = await self._fetch_into(entry, stale, request)
            whole: ResultT | None = fetched.result if fetched and stale is request else None
            if whole is not None:
                return whole
            if not is_cached:
                return await self._ask(request)
        rows = self.phase.index.find(request.nodes)
        if not rows.count or len(entry.values.stale(rows)):  # the state has changed meanwhile
            return await self._ask(request)
        result = self._answer(request, entry, rows)
        if not self._may_answer(request, result):
            return await self._ask(request)
        cached = rows.count - sum(map(rows.common, fetched.rows if fetched else ()))
        mark_cached(result.record, source, cached, fetched.record if fetched else None)
        if not cached:
            return result
        self.phase.metrics.cached(self.name, whole=fetched is None)
        return await self._verified(request, result)

    @abstractmethod
    async def _ask(self, request: CycleRequest) -> ResultT:
        """Have replicas answer."""

    @abstractmethod
    async def _fetch(self, request: CycleRequest) -> FetchedT:
        """Have replicas answer in the form that entries are made of."""

    @abstractmethod
    def _dependencies(self, profile: str) -> FilterDependencies | ScoreDependencies | None:
        """Return what the plugins of a profile depend on."""

    @abstractmethod
    def _new_entry(self, profile: str) -> EntryT:
        """Return an empty entry."""

    @abstractmethod
    def _learn(self, entry: EntryT, fetched: FetchedT, generation: int) -> bool:
        """Add to an entry what replicas answered; return whether that was possible."""

    @abstractmethod
    def _answer(self, request: CycleRequest, entry: EntryT, rows: NodeRows) -> ResultT:
        """Put the result together from an entry in which none of the rows is stale."""

    @abstractmethod
    def _difference(self, cached: ResultT, fresh: ResultT) -> str:
        """Return in what two results differ; empty if they do not."""

    def _may_answer(self, request: CycleRequest, result: ResultT) -> bool:
        """Whether a result from the cache can do without asking replicas."""
        del request, result
        return True

    def _entry(self, request: CycleRequest) -> EntryT | None:
        """Return the entry for pods like the request's; None if nothing may or need be cached.

        Nothing is cached for single plugins, nodes that the call brought, and pods that have a
        place: replicas leave such a pod out where it is, as they do with no other.
        """
        dependencies = self._dependencies(request.profile)
        if not self._store.limit or dependencies is None or dependencies.scope >= Scope.ANYTHING:
            return None
        if request.nodes.given is not None or request.plugin or request.excluded_pods:
            return None
        if self._state.place_of(request.pod.uid):
            return None
        key = dependencies.signature.of(request.pod)
        pool = self.phase.pool
        declared = self._policy.version_of(pool.kind.policy)
        entry = self._store.get(key, (self._policy.revision, declared, pool.turnover))
        if entry is None and self._store.seen_before(key):
            entry = self._new_entry(request.profile)
            self._store.put(key, entry)
        return entry

    def _stale(self, request: CycleRequest, entry: EntryT) -> CycleRequest | None:
        """Return a request about the stale nodes, None if there are none.

        It has some stale nodes that the request does not have: kube-scheduler goes through the
        nodes in turn, so their turn will come, and a message costs nearly the same for ten more.
        """
        index = self.phase.index
        rows = index.find(request.nodes)
        stale = entry.values.stale(rows)
        if not len(stale):
            return None
        if len(stale) == rows.count:
            return request
        more = entry.values.stale_elsewhere(rows)
        return request.on(index.at([*stale.tolist(), *more.tolist()]))

    async def _fetch_into(
        self, entry: EntryT, stale: CycleRequest, request: CycleRequest
    ) -> tuple[FetchedT | None, bool]:
        """Fetch the stale nodes; return whether their values could be joined with the others."""
        generation = self._state.generation
        try:
            fetched = await self._fetch(stale)
        except CallFailedError:
            if stale is request:
                raise
            # A plugin may have failed because of a node that was fetched along.
            entry.has_failed, entry.values.prefetch_limit = True, 0
            return None, False
        entry.has_failed = any(plugin.failure for plugin in fetched.record.plugins)
        if fetched.has_cycle_state:
            entry.is_usable = False  # replicas are asked about all pods like this one
            return fetched, False
        if entry.has_failed or entry.version not in ("", fetched.version):
            return fetched, False
        if not self._learn(entry, fetched, generation):
            return fetched, False
        entry.version = fetched.version
        entry.source = request.pod_name
        return fetched, True

    async def _verified(self, request: CycleRequest, result: ResultT) -> ResultT:
        """Ask replicas about a share of the cached results, and count differences.

        A plugin that declares less than it depends on misplaces pods; this finds it.
        """
        if not self._verify_share or random.random() >= self._verify_share:
            return result
        generation = self._state.generation
        fresh = await self._ask(request)
        if generation != self._state.generation:
            return result
        difference = self._difference(result, fresh)
        if not difference:
            return result
        self.phase.metrics.cache_differs(self.name)
        log.warning(
            "A plugin answers otherwise than for an equal pod before: check its depends_on",
            phase=self.name,
            profile=request.profile,
            pod=request.pod_name,
            difference=difference,
        )
        return fresh
