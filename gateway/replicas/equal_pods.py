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
a failure or with values for the bind. The next policy, and any replica that comes or goes, begin an
empty cache: code may have changed.
"""

import random
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from itertools import compress
from typing import Any, TypeGuard

import msgspec
import numpy as np
import structlog

from gateway.cycle import CallFailedError, Cycle, NodeSet
from gateway.cycle.decision import (
    FilterRecord,
    NodeScoreRecord,
    PhaseName,
    PluginScoreRecord,
    ScoreRecord,
)
from gateway.cycle.nodes import NodeRows, Rows
from gateway.cycle.scores import PluginScores, Scores
from gateway.cycle.verdicts import Codes, Reason, Verdicts
from gateway.policy.dependencies import EqualPodsRule
from gateway.policy.policy import PolicyHolder
from gateway.replicas.answers import Answers, Values
from gateway.replicas.filters import Filters, count_verdicts
from gateway.replicas.metrics import ReplicaMetrics
from gateway.replicas.scorers import TOTALS, Scorers
from gateway.settings import GatewaySettings
from moorage.plugin.scope import Scope
from moorage_host.plugins.ranking import best, compact, weighted_mean

log = structlog.get_logger()

SEEN = 1000
"""Signatures that are kept to recognise the second of equal pods; most pods have no equal."""

FETCHED_ALONG = 64
"""Stale nodes of other samples that replicas are asked about at once, at most."""

MOST_ENTRIES = 256
"""Unequal pods that answers are cached for, at most; `--cache-bytes` may allow fewer."""

MOST_REASONS = 1000
"""Reasons of one entry; a plugin may use another one each time."""


class Entry(msgspec.Struct, eq=False):
    """The answers about equal pods, by phase; None until replicas were asked."""

    filter: Answers | None = None
    score: Answers | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return sum(one.nbytes for one in (self.filter, self.score) if one is not None)


class Question(msgspec.Struct, eq=False):
    """What has to be asked in a phase of a cycle.

    Attributes:
        cycle: The cycle.
        entry: What is cached about equal pods.
        rows: The nodes of the phase.
        at: Their rows, in ascending order.
        stale: How many of them are stale.
        asked: These and stale nodes of other samples; None if none is stale, or all are.
        generation: That of the state now.
    """

    cycle: Cycle
    entry: Entry
    rows: NodeRows
    at: Rows
    stale: int
    asked: NodeSet | None
    generation: int

    @property
    def pod(self) -> str:
        """The pod as NAMESPACE/NAME."""
        return f"{self.cycle.pod.namespace}/{self.cycle.pod.metadata.name}"


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
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._seen: OrderedDict[int, None] = OrderedDict()

    async def judge(self, cycle: Cycle) -> Verdicts:
        """Return the verdicts on the nodes of a cycle, which gets their rows.

        Raises:
            CallFailedError: As `Filters.ask`.
        """
        rule = self._policy.dependencies.equal_pods.get(cycle.profile)
        question = None
        if rule is not None and rule.filter_scope < Scope.ANYTHING:
            question = self._question("filter", cycle, cycle.nodes, rule, rule.filter_scope)
        if question is not None and question.stale < question.rows.count:
            cached = await self._judge_part(question)
            if cached is not None:
                cycle.rows = question.rows
                return await self._verified_verdicts(cycle, cached) or cached
        verdicts, cycle.rows = await self._filters.ask(cycle, cycle.nodes)
        if question is not None:
            self._learn_verdicts(question, verdicts, cycle.rows.rows)
        return verdicts

    async def rank(self, cycle: Cycle, nodes: NodeSet) -> Scores:
        """Return the scores of some nodes for a cycle, which gets their rows.

        Raises:
            CallFailedError: As `Scorers.ask`.
        """
        rule = self._policy.dependencies.equal_pods.get(cycle.profile)
        question = None
        if rule is not None and rule.score_scope < Scope.ANYTHING:
            question = self._question("score", cycle, nodes, rule, rule.score_scope)
            if question is not None and question.stale < question.rows.count:
                cached = await self._rank_part(question, rule)
                if cached is not None:
                    cycle.scored = question.rows
                    return await self._verified_scores(cycle, nodes, cached) or cached
        scores, cycle.scored = await self._scorers.ask(cycle, nodes)
        if question is not None:
            raw = {each.plugin: each.raw for each in scores.plugins}
            kept = bool(scores.kept)
            self._learn_scores(question, raw, scores.record, cycle.scored.rows, has_kept=kept)
        return scores

    def _question(
        self, phase: PhaseName, cycle: Cycle, nodes: NodeSet, rule: EqualPodsRule, scope: Scope
    ) -> Question | None:
        """Return what has to be asked; None if nothing may or need be cached."""
        if cycle.plugin or cycle.excluded_pods or nodes.given is not None:
            return None
        if not self._most_bytes or self._state.place_of(cycle.uid):
            return None  # replicas leave a pod out where it is, as they do with no other
        entry = self._entry(cycle, rule)
        if entry is None:
            return None
        state, rows = self._state, self._index.find(nodes)
        at, stale, asked = rows.rows, rows.count, None
        known = entry.filter if phase == "filter" else entry.score
        if known is not None and known.capacity >= state.rows.capacity:
            is_stale = known.is_stale(at, state, scope)
            stale = int(np.count_nonzero(is_stale))
            if 0 < stale < rows.count:
                more = known.others_stale(at, state, scope, FETCHED_ALONG)
                asked = self._nodes_in(sorted([*at[is_stale].tolist(), *more]))
        return Question(cycle, entry, rows, at, stale, asked, state.generation)

    def _entry(self, cycle: Cycle, rule: EqualPodsRule) -> Entry | None:
        """Return the entry for pods like that of a cycle; None before the second of them."""
        turnovers = self._filters.replicas.turnover, self._scorers.replicas.turnover
        valid_for = self._policy.dependencies, *turnovers
        if valid_for != self._valid_for:
            self._valid_for = valid_for
            self._entries.clear()
        if cycle.signature:
            return self._entries.get(cycle.signature)
        key = cycle.signature = b"%b\0%b" % (cycle.profile.encode(), rule.signature.of(cycle.pod))
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            return entry
        hashed = hash(key)
        if hashed in self._seen:
            entry = self._entries[key] = Entry()
            if len(self._entries) > MOST_ENTRIES:
                self._entries.popitem(last=False)
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

    async def _judge_part(self, question: Question) -> Verdicts | None:
        """Answer from the cache and ask about stale nodes; None if these do not go together."""
        known = question.entry.filter
        if known is None:
            return None
        source, fetched = known.source, FilterRecord(nodes=0, feasible=0, seconds=0.0)
        if question.asked is not None:
            try:
                part, rows = await self._filters.ask(question.cycle, question.asked)
            except CallFailedError:
                # It may be about a node of another sample: ask about those of this one alone.
                question.entry.filter = None
                return None
            fetched = part.record
            self._learn_verdicts(question, part, rows.rows)
            if question.entry.filter is not known:
                return None
        codes, reasons = known.values[0, question.at], list(known.labels)
        record = FilterRecord(
            nodes=0,
            feasible=0,
            seconds=fetched.seconds,
            plugins=known.reports(fetched.plugins),
            shards=fetched.shards,
            version=known.version,
            cached_nodes=question.rows.count - question.stale,
            cached_from=source,
        )
        if reasons:
            codes, reasons = _in_use(codes, reasons)
            if codes.all():  # no node was left for the plugins after the last one that rejects
                rejecting = {reason.plugin for reason in reasons}
                while record.plugins and record.plugins[-1].plugin not in rejecting:
                    record.plugins.pop()
        verdicts = Verdicts(
            bitmap=question.rows.bitmap,
            codes=codes,
            reasons=reasons,
            record=record,
            generation=question.generation,
        )
        count_verdicts(verdicts, question.rows)
        self._metrics.cached("filter", whole=question.asked is None)
        return verdicts

    async def _rank_part(self, question: Question, rule: EqualPodsRule) -> Scores | None:
        """Rank by cached raw scores and those of stale nodes; None if these do not go together."""
        known = question.entry.score
        if known is None:
            return None
        source, fetched = known.source, ScoreRecord(nodes=0, seconds=0.0)
        if question.asked is not None:
            try:
                shard = await self._scorers.raw(question.cycle, question.asked)
            except CallFailedError:
                question.entry.score = None
                return None
            if not rule.accepts(shard.raw):
                return None
            fetched, kept = shard.record, bool(shard.kept)
            self._learn_scores(question, shard.raw, fetched, shard.rows.rows, has_kept=kept)
            if question.entry.score is not known:
                return None
        record = ScoreRecord(
            nodes=question.rows.count,
            seconds=fetched.seconds,
            plugins=known.reports(fetched.plugins),
            shards=fetched.shards,
            version=known.version,
            cached_nodes=question.rows.count - question.stale,
            cached_from=source,
        )
        values, parts, opinions = known.values[:, question.at], [], []
        for plugin, line in known.labels.items():
            weight, normalization = rule.score_plugins[plugin]
            raw, normalized = values[line], normalization.apply(values[line])
            parts.append((plugin, weight, raw, normalized))
            kept_raw, rounded = compact(raw, normalized)
            opinions.append(
                PluginScores(plugin=plugin, weight=weight, raw=kept_raw, normalized=rounded)
            )
        totals = weighted_mean([(weight, normalized) for _, weight, _, normalized in parts])
        if totals is not None:
            for index in best(totals, self._top):
                of_node = []
                for plugin, weight, raw, normalized in parts:
                    of_node.append(
                        PluginScoreRecord(
                            plugin=plugin,
                            raw=raw.item(index),
                            normalized=normalized.item(index),
                            weight=weight,
                        )
                    )
                node = self._state.rows.name_at(int(question.at[index])) or ""
                top = NodeScoreRecord(node=node, total=totals.item(index), plugins=of_node)
                record.top.append(top)
        self._metrics.cached("score", whole=question.asked is None)
        return Scores(
            generation=question.generation,
            bitmap=question.rows.bitmap,
            totals=np.zeros(0, TOTALS) if totals is None else totals.astype(TOTALS),
            plugins=opinions,
            record=record,
        )

    def _learn_verdicts(self, question: Question, verdicts: Verdicts, at: Rows) -> None:
        """Take over verdicts; where they do not go with earlier ones, these are forgotten."""
        record, entry = verdicts.record, question.entry
        known = entry.filter
        has_failed = any(each.failure for each in record.plugins)
        if verdicts.kept or has_failed or len(verdicts.reasons) > MOST_REASONS:
            entry.filter = None
            return
        if (
            not self._fits(known, record.version)
            or len(known.labels.keys() | verdicts.reasons) > MOST_REASONS
        ):
            known = entry.filter = self._room({}, 1, np.uint16, record.version)
        numbers = [0]
        for reason in verdicts.reasons:
            numbers.append(known.labels.setdefault(reason, len(known.labels) + 1))  # noqa: PERF401
        codes = np.array(numbers, np.uint16)[verdicts.codes]
        known.learn(at, codes, question.generation, record.plugins, question.pod)

    def _learn_scores(
        self,
        question: Question,
        raw: Mapping[str, Values],
        record: ScoreRecord,
        at: Rows,
        *,
        has_kept: bool,
    ) -> None:
        """Take over raw scores, likewise."""
        entry = question.entry
        known = entry.score
        if has_kept or any(each.failure for each in record.plugins):
            entry.score = None
            return
        if not self._fits(known, record.version) or known.labels.keys() != raw.keys():
            lines = {plugin: line for line, plugin in enumerate(raw)}
            known = entry.score = self._room(lines, len(raw), np.float64, record.version)
        values = np.array([raw[plugin] for plugin in known.labels])
        known.learn(at, values, question.generation, record.plugins, question.pod)

    def _fits(self, known: Answers | None, version: str) -> TypeGuard[Answers]:
        """Whether answers of plugins of a version can be added to what is known."""
        if known is None or known.version != version:
            return False
        return known.capacity >= self._state.rows.capacity

    def _room(self, labels: dict[Any, int], lines: int, kind: type[Any], version: str) -> Answers:
        """Return room for answers; the entries that were not used for longest make room for it."""
        capacity = (self._state.rows.capacity | 255) + 1
        room, entries = Answers(labels, lines, kind, capacity, version), self._entries
        taken = room.nbytes + sum(entry.nbytes for entry in entries.values())
        while len(entries) > 1 and taken > self._most_bytes:
            taken -= entries.popitem(last=False)[1].nbytes
        return room

    async def _verified_verdicts(self, cycle: Cycle, cached: Verdicts) -> Verdicts | None:
        """Have replicas judge a share of the cached answers too; return what is right instead.

        A plugin that declares less than it depends on misplaces pods; this finds it.
        """
        if not self._verifies(cached.generation):
            return None
        try:
            fresh, rows = await self._filters.ask(cycle, cycle.nodes)
        except CallFailedError:
            return None  # what is cached is an answer still
        failed = any(each.failure for each in fresh.record.plugins)
        if failed or cached.generation != self._state.generation:
            return None
        before, now = _texts(cached), _texts(fresh)
        differing = [at for at, text in enumerate(before) if text != now[at]]
        if not differing:
            return None
        first = f"cached {before[differing[0]]}, now {now[differing[0]]}"
        self._report("filter", cycle, f"{len(differing)} verdicts, the first: {first}")
        cycle.rows = rows
        return fresh

    async def _verified_scores(self, cycle: Cycle, nodes: NodeSet, cached: Scores) -> Scores | None:
        """Have replicas rank a share of the cached answers too, likewise."""
        if not self._verifies(cached.generation):
            return None
        try:
            fresh, rows = await self._scorers.ask(cycle, nodes)
        except CallFailedError:
            return None
        failed = any(each.failure for each in fresh.record.plugins)
        if failed or cached.generation != self._state.generation:
            return None
        before, now = cached.totals, fresh.totals
        difference = "only one answer has scores"
        if len(before) == len(now):
            differing = np.flatnonzero(~np.isclose(before, now, rtol=1e-6, atol=1e-6)).tolist()
            difference = ""
            if differing:
                at = differing[0]
                totals = f"cached {before[at]:g}, now {now[at]:g}"
                difference = f"{len(differing)} totals, the first at position {at}: {totals}"
        if not difference:
            return None
        self._report("score", cycle, difference)
        cycle.scored = rows
        return fresh

    def _verifies(self, generation: int) -> bool:
        """Whether replicas shall confirm an answer; not if the state has changed since."""
        if not self._verify_share or generation != self._state.generation:
            return False
        return random.random() < self._verify_share

    def _report(self, phase: PhaseName, cycle: Cycle, difference: str) -> None:
        """Report a wrong answer of the cache, which begins again for such pods."""
        self._entries.pop(cycle.signature, None)
        self._metrics.cache_differs(phase)
        log.warning(
            "A plugin answers otherwise than for an equal pod before: check its depends_on "
            "and pod_fields",
            phase=phase,
            profile=cycle.profile,
            pod=f"{cycle.pod.namespace}/{cycle.pod.metadata.name}",
            difference=difference,
        )


def _in_use(codes: Codes, reasons: Sequence[Reason]) -> tuple[Codes, list[Reason]]:
    """Return codes of those reasons alone that occur."""
    occurs = np.bincount(codes, minlength=len(reasons) + 1) > 0
    occurs[0] = False
    numbers = np.cumsum(occurs, dtype=np.uint16)
    numbers[0] = 0
    return numbers[codes], list(compress(reasons, occurs[1:].tolist()))


def _texts(verdicts: Verdicts) -> list[str]:
    texts = ["feasible", *(f"{each.plugin}: {each.text}" for each in verdicts.reasons)]
    return [texts[code] for code in verdicts.codes.tolist()]
