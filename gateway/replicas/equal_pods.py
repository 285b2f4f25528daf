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
single plugin, bring nodes, leave pods out, or are about a pod that has a place; nor of answers with
a failure or with values for the bind. The next policy, and a replica process that is new, begin an
empty cache: code may have changed.
"""

import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
import structlog

from gateway.cycle import CallFailedError, Cycle, NodeSet
from gateway.cycle.decision import PhaseName
from gateway.cycle.nodes import NodeRows, Rows
from gateway.cycle.scores import Scores
from gateway.cycle.verdicts import Verdicts
from gateway.policy.dependencies import EqualPodsRule
from gateway.policy.policy import PolicyHolder
from gateway.replicas.answers import (
    MOST_REASONS,
    AnyRecord,
    CachedScores,
    CachedVerdicts,
    Entry,
    Question,
)
from gateway.replicas.filters import Filters
from gateway.replicas.metrics import ReplicaMetrics
from gateway.replicas.scorers import Scorers
from gateway.settings import GatewaySettings
from moorage.plugin.values import Scope

log = structlog.get_logger()

SEEN = 1000
"""Signatures that are kept to recognise the second of equal pods; most pods have no equal."""

FETCHED_ALONG = 64
"""Stale nodes of other samples that replicas are asked about at once, at most."""

MOST_ENTRIES = 256
"""Unequal pods that answers are cached for, at most; `--cache-bytes` may allow fewer."""

KINDS: dict[PhaseName, type[CachedVerdicts] | type[CachedScores]] = {
    "filter": CachedVerdicts,
    "score": CachedScores,
}

Answer = TypeVar("Answer", Verdicts, Scores)


class EqualPods:
    """Judges and ranks: replicas answer what is not cached."""

    def __init__(
        self,
        policy: PolicyHolder,
        filters: Filters,
        scorers: Scorers,
        settings: GatewaySettings,
        metrics: ReplicaMetrics,
    ) -> None:
        self._policy = policy
        self._filters, self._scorers = filters, scorers
        self._index, self._state = filters.replicas.feed.index, filters.replicas.feed.state
        self._most_bytes = settings.cache_bytes
        self._verify_share = settings.cache_verify_share
        self._top = settings.decision_top
        self._metrics = metrics
        self._valid_for: Hashable = None
        # By what makes pods equal.
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._seen: OrderedDict[int, None] = OrderedDict()

    async def judge(self, cycle: Cycle) -> Verdicts:
        """Return the verdicts on the nodes of a cycle, which gets their rows.

        Raises:
            CallFailedError: As `Filters.ask`.
        """
        question = self._question("filter", cycle, cycle.nodes)
        if question is not None and question.stale < question.rows.count:
            known = question.entry["filter"]
            fetched = await self._fetched(question) if question.asked is not None else None
            if question.entry.get("filter") is known:
                self._metrics.cached("filter", whole=question.asked is None)
                verdicts = known.verdicts(question, fetched)
                cycle.rows = question.rows
                if self._verify_share:
                    verdicts, cycle.rows = await self._verified(
                        question, verdicts, lambda: self._filters.ask(cycle, cycle.nodes)
                    )
                return verdicts
        verdicts, cycle.rows = await self._filters.ask(cycle, cycle.nodes)
        if question is not None:
            self._learn_verdicts(question, verdicts, cycle.rows.rows)
        return verdicts

    async def rank(self, cycle: Cycle, nodes: NodeSet) -> Scores:
        """Return the scores of some nodes for a cycle, which gets their rows.

        Raises:
            CallFailedError: As `Scorers.ask`.
        """
        question = self._question("score", cycle, nodes)
        if question is not None and question.stale < question.rows.count:
            known = question.entry["score"]
            fetched = await self._fetched(question) if question.asked is not None else None
            if question.entry.get("score") is known:
                self._metrics.cached("score", whole=question.asked is None)
                scores = known.scores(question, fetched, self._state.rows.names, self._top)
                cycle.scored = question.rows
                if self._verify_share:
                    scores, cycle.scored = await self._verified(
                        question, scores, lambda: self._scorers.ask(cycle, nodes)
                    )
                return scores
        scores, cycle.scored = await self._scorers.ask(cycle, nodes)
        if question is not None:
            raw = {each.plugin: each.raw for each in scores.plugins}
            self._learn(question, raw, scores.record, cycle.scored.rows, may_keep=not scores.kept)
        return scores

    def _question(self, phase: PhaseName, cycle: Cycle, nodes: NodeSet) -> Question | None:
        """Return what has to be asked; None if nothing may or need be cached."""
        rule = self._policy.dependencies.equal_pods.get(cycle.profile)
        if rule is None or cycle.plugin or cycle.excluded_pods or nodes.given is not None:
            return None
        scope = rule.filter_scope if phase == "filter" else rule.score_scope
        if scope >= Scope.ANYTHING or not self._most_bytes or self._state.place_of(cycle.uid):
            return None  # replicas leave a pod out where it is, as they do with no other
        entry = self._entry(cycle, rule)
        if entry is None:
            return None
        state, rows = self._state, self._index.find(nodes)
        at, stale, asked, source = rows.rows, rows.count, None, ""
        known = entry.get(phase)
        if known is not None and known.capacity >= state.rows.capacity:
            source, is_stale = known.source, known.is_stale(at, state, scope)
            stale = int(np.count_nonzero(is_stale))
            if 0 < stale < rows.count:
                more = known.others_stale(at, state, scope, FETCHED_ALONG)
                asked = self._nodes_in(sorted([*at[is_stale].tolist(), *more]))
        return Question(
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
        )

    def _entry(self, cycle: Cycle, rule: EqualPodsRule) -> Entry | None:
        """Return what is cached for pods like that of a cycle; None before the second of them."""
        turnovers = self._filters.replicas.turnover, self._scorers.replicas.turnover
        # The dependencies say neither which plugins run nor with which arguments.
        valid_for = self._policy.revision, self._policy.dependencies, *turnovers
        if valid_for != self._valid_for:
            self._entries.clear()
        self._valid_for = valid_for
        if cycle.signature:
            return self._entries.get(cycle.signature)
        key = cycle.signature = b"%b\0%b" % (cycle.profile.encode(), rule.signature.of(cycle.pod))
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

    async def _fetched(self, question: Question) -> AnyRecord | None:
        """Ask about stale nodes, and learn the answers.

        What is cached of the phase is replaced or gone if these do not go with it.
        """
        cycle, asked = question.cycle, question.asked
        assert asked is not None  # noqa: S101 - else nobody is asked
        try:
            if question.phase == "filter":
                verdicts, rows = await self._filters.ask(cycle, asked)
                self._learn_verdicts(question, verdicts, rows.rows)
                return verdicts.record
            shard = await self._scorers.raw(cycle, asked)
        except CallFailedError:
            # It may be about a node of another sample: ask about those of this one alone.
            question.entry.pop(question.phase, None)
            return None
        may_keep = not shard.kept and question.rule.accepts(shard.raw)
        self._learn(question, shard.raw, shard.record, shard.rows.rows, may_keep=may_keep)
        return shard.record

    def _learn_verdicts(self, question: Question, verdicts: Verdicts, at: Rows) -> None:
        may_keep = not verdicts.kept and len(verdicts.reasons) <= MOST_REASONS
        self._learn(question, verdicts, verdicts.record, at, may_keep=may_keep)

    def _learn(
        self, question: Question, answered: Any, record: AnyRecord, at: Rows, *, may_keep: bool
    ) -> None:
        """Take over answers about some rows, if they may be kept.

        Where they may not, or do not go with earlier ones, these are forgotten.
        """
        phase, entry, capacity = question.phase, question.entry, self._state.rows.capacity
        if not may_keep or any(each.failure for each in record.plugins):
            entry.pop(phase, None)
            return
        known: Any = entry.get(phase)
        pod = question.cycle.pod.metadata
        before = known.nbytes if known is not None else 0
        learned = (answered, record, at, question.generation, f"{pod.namespace}/{pod.name}")
        if known is None or known.capacity < capacity or not known.learn(*learned):
            known = entry[phase] = KINDS[phase](answered, (capacity | 255) + 1, record.version)
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
        self,
        question: Question,
        cached: Answer,
        ask: Callable[[], Awaitable[tuple[Answer, NodeRows]]],
    ) -> tuple[Answer, NodeRows]:
        """Have replicas answer a share of what is cached too; return what is right.

        A plugin that declares less than it depends on misplaces pods; this finds it.
        """
        state, answer = self._state, (cached, question.rows)
        if cached.generation != state.generation or random.random() >= self._verify_share:
            return answer
        try:
            fresh = await ask()
        except CallFailedError:
            return answer  # what is cached is an answer still
        failed = any(each.failure for each in fresh[0].record.plugins)
        if failed or cached.generation != state.generation:
            return answer
        difference = _difference(cached, fresh[0])
        if not difference:
            return answer
        cycle, phase = question.cycle, question.phase
        self._entries.pop(cycle.signature, None)  # such pods begin again
        self._metrics.cache_differs(phase)
        log.warning(
            "A plugin answers otherwise than for an equal pod before: check its depends_on "
            "and pod_fields",
            phase=phase,
            profile=cycle.profile,
            pod=f"{cycle.pod.namespace}/{cycle.pod.metadata.name}",
            difference=difference,
        )
        return fresh


def _nbytes(key: bytes, entry: Any) -> int:
    arrays: int = sum(known.nbytes for known in entry.values())
    return len(key) + arrays


def _difference(cached: Verdicts | Scores, fresh: Verdicts | Scores) -> str:
    """Return in words how answers differ; "" if they do not."""
    if isinstance(cached, Verdicts) and isinstance(fresh, Verdicts):
        texts, now = _texts(cached), _texts(fresh)
        differing = [at for at, text in enumerate(texts) if text != now[at]]
        if not differing:
            return ""
        first = differing[0]
        return f"{len(differing)} verdicts, the first: cached {texts[first]}, now {now[first]}"
    assert isinstance(cached, Scores) and isinstance(fresh, Scores)  # noqa: S101, PT018
    before, after = cached.totals, fresh.totals
    if len(before) != len(after):
        return "only one answer has scores"
    differing = np.flatnonzero(~np.isclose(before, after, rtol=1e-6, atol=1e-6)).tolist()
    if not differing:
        return ""
    at = differing[0]
    totals = f"cached {before[at]:g}, now {after[at]:g}"
    return f"{len(differing)} totals, the first at position {at}: {totals}"


def _texts(verdicts: Verdicts) -> list[str]:
    texts = ["feasible", *(f"{each.plugin}: {each.text}" for each in verdicts.reasons)]
    return [texts[code] for code in verdicts.codes.tolist()]
