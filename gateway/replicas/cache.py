"""The cache before replicas: what plugins answered about a node holds for equal pods.

Pods are equal if the plugins of their profile read the same in them (`Plugin.pod_fields`). What a
plugin answers about a node depends on that node alone, on all manifests, or on the whole cluster
(`Plugin.depends_on`), and the state knows in which generation each last changed. So of a pod that
equals an earlier one, replicas are asked about *stale* nodes only, and about none if there are
none. kube-scheduler offers one sample of the nodes after the other, and puts a pod on one of each:
whenever replicas are asked about some nodes, they are asked about stale ones of other samples too,
so most cycles of equal pods send no message at all.

What is normalised over all nodes of a cycle is worked out here, from raw scores, as replicas do.

Nothing is cached of plugins that depend on anything else or may want a claim; of cycles that run a
single plugin, bring nodes, add pods or leave some out, or are about a pod that has a place; nor of
answers with a failure or with values for the bind. The next policy, and a replica process that is
new, begin an empty cache: code may have changed.
"""

import random
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import structlog

from gateway.cycle import CallFailedError, Cycle, Judge, NodeSet, Rank
from gateway.cycle.answers import AnswerT, PhaseScores, PhaseVerdicts
from gateway.cycle.decision import PhaseName
from gateway.cycle.nodes import NodeRows
from gateway.policy.dependencies import EqualPodsRule
from gateway.policy.policy import PolicyHolder
from gateway.replicas.cached import (
    MOST_REASONS,
    CachedAnswers,
    CachedScores,
    CachedVerdicts,
    CacheLookup,
)
from gateway.replicas.client import FilterClient, ReplicaClient, ScoreClient
from gateway.replicas.metrics import ReplicaMetrics
from gateway.settings import GatewaySettings
from moorage.plugin.values import Scope

log = structlog.get_logger()

SEEN = 1000
"""Signatures that are kept to recognise the second of equal pods; most pods have no equal."""

FETCHED_ALONG = 64
"""Stale nodes of other samples that replicas are asked about at once, at most."""

MOST_ENTRIES = 256
"""Unequal pods that answers are cached for, at most; `--cache-bytes` may allow fewer."""

CACHED: dict[PhaseName, type[CachedVerdicts] | type[CachedScores]] = {
    "filter": CachedVerdicts,
    "score": CachedScores,
}

Entry = dict[PhaseName, CachedAnswers[Any]]
"""What is cached about equal pods, by phase."""


class AnswerCache:
    """Answers from what is cached, and has replicas asked about the rest.

    Attributes:
        judge: Returns the verdicts on the nodes of a cycle.
        rank: Returns the scores of some nodes for a cycle.
    """

    def __init__(
        self,
        policy: PolicyHolder,
        filters: FilterClient,
        scorers: ScoreClient,
        settings: GatewaySettings,
        metrics: ReplicaMetrics,
    ) -> None:
        self.judge: Judge = partial(self._answer, filters)
        self.rank: Rank = partial(self._answer, scorers)
        self._policy = policy
        self._filters, self._scorers = filters.replicas, scorers.replicas
        self._index, self._state = self._filters.feed.index, self._filters.feed.state
        self._most_bytes = settings.cache_bytes
        self._verify_share = settings.cache_verify_share
        self._top = settings.decision_top
        self._metrics = metrics
        self._valid_for: Hashable = None
        # By what makes pods equal.
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._seen: OrderedDict[int, None] = OrderedDict()

    async def _answer(
        self, client: ReplicaClient[AnswerT], cycle: Cycle, nodes: NodeSet | None = None
    ) -> AnswerT:
        """Return what plugins say of some nodes for a cycle, or of all its nodes.

        Raises:
            CallFailedError: As `ReplicaClient.ask`.
        """
        phase, nodes = client.phase, cycle.nodes if nodes is None else nodes
        lookup = self._lookup(phase, cycle, nodes)
        if lookup is not None and lookup.stale < lookup.rows.count:
            known: CachedAnswers[AnswerT] = lookup.entry[phase]
            fetched = None
            if lookup.asked is not None:
                fetched = await self._fetched(client, lookup, lookup.asked)
            if lookup.entry.get(phase) is known:
                self._metrics.cached[phase, lookup.asked is None]()
                answer = known.answer(lookup, fetched, self._top)
                if self._verify_share:
                    answer = await self._verified(client, lookup, answer, nodes)
                return answer
        answer = await client.ask(cycle, nodes)
        if lookup is not None:
            self._learn(lookup, answer)
        return answer

    def _lookup(self, phase: PhaseName, cycle: Cycle, nodes: NodeSet) -> CacheLookup | None:
        """Return what is known and what has to be asked; None if nothing may or need be cached."""
        rule = self._policy.dependencies.equal_pods.get(cycle.profile)
        if rule is None or cycle.plugin or cycle.excluded_pods or nodes.given is not None:
            return None
        if cycle.added_pods:
            return None  # which they are depends on more of the pod than its plugins read
        scope = rule.filter_scope if phase == "filter" else rule.score_scope
        if scope >= Scope.ANYTHING or not self._most_bytes or cycle.uid in self._state.places:
            return None  # replicas leave a pod out where it is, as they do with no other
        entry = self._entry(cycle, rule)
        if entry is None:
            return None
        state, rows = self._state, self._index.find(nodes)
        at, stale, asked, source = rows.rows, rows.count, None, ""
        known = entry.get(phase)
        if known is not None and known.capacity >= len(rows.mask) - 1:
            source, is_stale = known.source, known.is_stale(at, state, scope)
            stale = int(np.count_nonzero(is_stale))
            if 0 < stale < rows.count:
                more = known.others_stale(at, state, scope, FETCHED_ALONG)
                asked = self._nodes_in(sorted([*at[is_stale].tolist(), *more]))
        return CacheLookup(
            phase=phase,
            cycle=cycle,
            rule=rule,
            entry=entry,
            rows=rows,
            at=at,
            stale=stale,
            asked=asked,
            source=source,
            generation=state.generation,
            state=state,
        )

    def _entry(self, cycle: Cycle, rule: EqualPodsRule) -> Entry | None:
        """Return what is cached for pods like that of a cycle; None before the second of them."""
        epochs = self._filters.code_epoch, self._scorers.code_epoch
        # The dependencies say neither which plugins run nor with which arguments.
        valid_for = self._policy.revision, self._policy.dependencies, *epochs
        if valid_for != self._valid_for:
            self._entries.clear()
        self._valid_for = valid_for
        if cycle.signature:
            return self._entries.get(cycle.signature)
        key = b"%b\0%b" % (cycle.profile.encode(), rule.signature.of(cycle.pod))
        cycle.sign(key)
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            return entry
        hashed = hash(key)
        if hashed in self._seen:
            entry = self._entries[key] = {}
            if len(self._entries) > MOST_ENTRIES:
                self._entries.popitem(last=False)
            self._make_room()
        self._seen[hashed] = None
        self._seen.move_to_end(hashed)
        if len(self._seen) > SEEN:
            self._seen.popitem(last=False)
        return entry

    def _nodes_in(self, at: Sequence[int]) -> NodeSet:
        """Return the nodes in some rows."""
        rows = self._state.rows
        names = rows.names
        nodes = NodeSet([names[row] or "" for row in at])
        nodes.rows = rows.version, NodeRows.at(np.array(at, np.intp), rows.capacity)
        return nodes

    async def _fetched(
        self, client: ReplicaClient[AnswerT], lookup: CacheLookup, asked: NodeSet
    ) -> AnswerT | None:
        """Ask about stale nodes, and learn the answers.

        What is cached of the phase is replaced or gone if these do not go with it.
        """
        try:
            answer = await client.ask(lookup.cycle, asked, only_raw=True)
        except CallFailedError:
            # It may be about a node of another sample: ask about those of this one alone.
            lookup.entry.pop(lookup.phase, None)
            return None
        if isinstance(answer, PhaseScores) and not lookup.rule.accepts(
            {each.plugin: each.raw for each in answer.plugins}
        ):
            lookup.entry.pop(lookup.phase, None)
            return None
        self._learn(lookup, answer)
        return answer

    def _learn(self, lookup: CacheLookup, answer: PhaseVerdicts | PhaseScores) -> None:
        """Take over an answer, if it may be kept.

        Where it may not, or does not go with earlier ones, these are forgotten.
        """
        phase, entry, capacity = lookup.phase, lookup.entry, self._state.rows.capacity
        has_many_reasons = isinstance(answer, PhaseVerdicts) and len(answer.reasons) > MOST_REASONS
        if answer.kept or has_many_reasons or any(each.failure for each in answer.record.plugins):
            entry.pop(phase, None)
            return
        known = entry.get(phase)
        pod = lookup.cycle.pod.metadata
        before = known.nbytes if known is not None else 0
        learned = (answer, lookup.generation, f"{pod.namespace}/{pod.name}")
        if known is None or known.capacity < capacity or not known.learn(*learned):
            kind: Any = CACHED[phase]
            known = entry[phase] = kind(answer, (capacity | 255) + 1, answer.record.version)
            known.learn(*learned)
        if known.nbytes != before:
            self._make_room()

    def _make_room(self) -> None:
        """Forget the entries that were not used for longest, while all take too much."""
        entries, taken = self._entries, 0
        for key, entry in entries.items():
            taken += _nbytes(key, entry)
        while len(entries) > 1 and taken > self._most_bytes:
            key, entry = entries.popitem(last=False)
            taken -= _nbytes(key, entry)

    async def _verified(
        self, client: ReplicaClient[AnswerT], lookup: CacheLookup, cached: AnswerT, nodes: NodeSet
    ) -> AnswerT:
        """Have replicas answer a share of what is cached too; return what is right.

        A plugin that declares less than it depends on misplaces pods; this finds it.
        """
        state, cycle = self._state, lookup.cycle
        if cached.generation != state.generation or random.random() >= self._verify_share:
            return cached
        try:
            fresh = await client.ask(cycle, nodes)
        except CallFailedError:
            return cached  # it is an answer still
        failed = any(each.failure for each in fresh.record.plugins)
        if failed or cached.generation != state.generation:
            return cached
        difference = _difference(cached, fresh)
        if not difference:
            return cached
        self._entries.pop(cycle.signature, None)  # such pods begin again
        self._metrics.cache_differs(lookup.phase)
        log.warning(
            "A plugin answers otherwise than for an equal pod before: check its depends_on "
            "and pod_fields",
            phase=lookup.phase,
            profile=cycle.profile,
            pod=f"{cycle.pod.namespace}/{cycle.pod.metadata.name}",
            difference=difference,
        )
        return fresh


def _nbytes(key: bytes, entry: Any) -> int:
    arrays: int = sum(known.nbytes for known in entry.values())
    return len(key) + arrays


def _difference(cached: PhaseVerdicts | PhaseScores, fresh: PhaseVerdicts | PhaseScores) -> str:
    """Return in words how answers differ; "" if they do not."""
    if isinstance(cached, PhaseVerdicts) and isinstance(fresh, PhaseVerdicts):
        texts, now = _texts(cached), _texts(fresh)
        differing = [at for at, text in enumerate(texts) if text != now[at]]
        if not differing:
            return ""
        first = differing[0]
        return f"{len(differing)} verdicts, the first: cached {texts[first]}, now {now[first]}"
    assert isinstance(cached, PhaseScores) and isinstance(fresh, PhaseScores)  # noqa: S101, PT018
    before, after = cached.totals, fresh.totals
    if len(before) != len(after):
        return "only one answer has scores"
    differing = np.flatnonzero(~np.isclose(before, after, rtol=1e-6, atol=1e-6)).tolist()
    if not differing:
        return ""
    at = differing[0]
    totals = f"cached {before[at]:g}, now {after[at]:g}"
    return f"{len(differing)} totals, the first at position {at}: {totals}"


def _texts(verdicts: PhaseVerdicts) -> list[str]:
    texts = ["feasible", *(f"{each.plugin}: {each.text}" for each in verdicts.reasons)]
    return [texts[code] for code in verdicts.codes.tolist()]
