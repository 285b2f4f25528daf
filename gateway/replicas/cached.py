"""What plugins answered about equal pods, by row: for how long it is valid, and what it amounts to.

An answer about a node is valid until something has changed that its plugins depend on, and the
state knows in which generation that was. What is normalised over all nodes of a cycle is worked out
from raw scores, as replicas do.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import compress
from typing import Any, Generic

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cluster.state import ClusterState
from gateway.cycle import Cycle, NodeSet
from gateway.cycle.answers import AnswerT, Codes, PhaseScores, PhaseVerdicts
from gateway.cycle.decision import FilterRecord, PhaseName, PluginRecord, ScoreRecord
from gateway.cycle.nodes import Mask, NodeRows, Rows
from gateway.policy.dependencies import EqualPodsRule
from gateway.replicas.reading import SINGLE
from moorage.execution import PluginRejection, PluginScores
from moorage.plugin.values import Scope
from moorage_host.plugins.ranking import compact, weighted_mean

NEVER = -1

MOST_REASONS = 1000
"""Reasons of one kind of pods; a plugin may use another one each time."""

REASON_BYTES = 200
"""What a reason takes in addition to its text, about."""

Values = npt.NDArray[Any]


class CacheLookup(msgspec.Struct, eq=False, kw_only=True):
    """What the cache knows about a phase of a cycle, and what replicas have to be asked.

    Attributes:
        phase: The phase.
        cycle: The cycle.
        rule: When pods of its profile are equal.
        entry: What is cached about equal pods, by phase.
        rows: The nodes of the phase.
        at: Their rows, in ascending order.
        stale: How many of them are stale.
        asked: These and stale nodes of other samples; None if none is stale, or all are.
        source: The pod that replicas were asked about last, as NAMESPACE/NAME.
        generation: That of the state now.
        state: The state, which may change while replicas are asked.
    """

    phase: PhaseName
    cycle: Cycle
    rule: EqualPodsRule
    entry: "dict[PhaseName, CachedAnswers[Any]]"
    rows: NodeRows
    at: Rows
    stale: int
    asked: NodeSet | None
    source: str
    generation: int
    state: ClusterState


class CachedAnswers(ABC, Generic[AnswerT]):
    """What the plugins of one phase answered about equal pods: some numbers for each row.

    Attributes:
        version: That of the plugins.
        source: The pod that they were asked about last, as NAMESPACE/NAME.
        capacity: How many rows there is room for.
        nbytes: What it takes in memory.
    """

    __slots__ = ("_plugins", "_valid_at", "capacity", "nbytes", "source", "values", "version")

    def __init__(self, lines: int, kind: type[Any], capacity: int, version: str) -> None:
        """Know nothing yet about *capacity* rows."""
        self.values: Values = np.zeros((lines, capacity), kind)
        self.version = version
        self.source = ""
        self.capacity = capacity
        self._valid_at = np.full(capacity, NEVER, np.int64)
        self._plugins: Sequence[tuple[str, bool]] = ()
        self.nbytes = int(self.values.nbytes + self._valid_at.nbytes)

    @abstractmethod
    def _numbers(self, answer: AnswerT) -> Values | None:
        """Return an answer as it is kept; None if it does not go with what is."""

    @abstractmethod
    def answer(self, lookup: CacheLookup, fetched: AnswerT | None, top: int) -> AnswerT:
        """Return what plugins say; what was *fetched* now is learned already.

        Of scores, the record lists the *top* nodes.
        """

    def is_stale(self, at: Rows, state: ClusterState, scope: Scope) -> Mask:
        """Return for each row in *at* whether plugins of such a scope have to be asked."""
        valid_at = self._valid_at[at]
        if scope >= Scope.CLUSTER:
            stale: Mask = valid_at < state.generation
            return stale
        stale = state.rows.touched[at] > valid_at
        if scope >= Scope.MANIFESTS:
            stale |= valid_at < state.manifests_changed
        return stale

    def others_stale(self, at: Rows, state: ClusterState, scope: Scope, most: int) -> list[int]:
        """Return at most *most* stale rows that are not in *at* and were asked about before."""
        if scope >= Scope.CLUSTER:
            return []  # everything is stale
        rows = np.arange(state.rows.capacity)
        others = self.is_stale(rows, state, scope) & (self._valid_at[rows] > NEVER)
        others[at] = False
        found, names = [], state.rows.names
        for row in others.nonzero()[0][:most].tolist():
            if names[row] is None:
                self._valid_at[row] = NEVER  # its node is gone: it is looked at once
            else:
                found.append(row)
        return found

    def learn(self, answer: AnswerT, generation: int, pod: str) -> bool:
        """Take over what plugins answered about a pod, valid for a generation.

        Returns:
            Whether it goes with what is known.
        """
        record = answer.record
        values = self._numbers(answer) if record.version == self.version else None
        if values is None:
            return False
        at = answer.rows.rows
        self._valid_at[at] = generation
        if values.size:
            self.values[:, at] = values
        # Where no nodes were left, the plugins after that did not run.
        plugins = [(each.plugin, each.skipped) for each in record.plugins]
        self._plugins = max(plugins, self._plugins, key=len)
        self.source = pod
        return True

    def _complete(self, answer: AnswerT, lookup: CacheLookup, fetched: AnswerT | None) -> None:
        """Note in the record what plugins did, those included that were not asked; and the rest."""
        record = answer.record
        now, by_name = record, dict[str, PluginRecord]()
        if fetched is not None:
            now = fetched.record
            by_name = {each.plugin: each for each in now.plugins}
        plugins = []
        for plugin, skipped in self._plugins:
            report = by_name.get(plugin)
            plugins.append(report or PluginRecord(plugin=plugin, seconds=0.0, skipped=skipped))
        record.plugins, record.seconds, record.shards = plugins, now.seconds, now.shards
        record.version, record.cached_from = self.version, lookup.source
        record.cached_nodes = lookup.rows.count - lookup.stale


class CachedVerdicts(CachedAnswers[PhaseVerdicts]):
    """For each row 0, or the number of the reason for which it was rejected."""

    __slots__ = ("_codes",)

    def __init__(self, _: PhaseVerdicts, capacity: int, version: str) -> None:
        super().__init__(1, np.uint16, capacity, version)
        self._codes: dict[PluginRejection, int] = {}

    def _numbers(self, answer: PhaseVerdicts) -> Values | None:
        codes, code_of = [0], self._codes
        if len(code_of.keys() | answer.reasons) > MOST_REASONS:
            return None
        for reason in answer.reasons:
            if reason not in code_of:
                code_of[reason] = len(code_of) + 1
                self.nbytes += REASON_BYTES + len(reason.text)
            codes.append(code_of[reason])
        return np.array(codes, np.uint16)[answer.codes]

    def answer(self, lookup: CacheLookup, fetched: PhaseVerdicts | None, top: int) -> PhaseVerdicts:
        """Return the verdicts."""
        codes, reasons = self.values[0, lookup.at], list(self._codes)
        if reasons:
            codes, reasons = _in_use(codes, reasons)
        verdicts = PhaseVerdicts(
            bitmap=lookup.rows.bitmap,
            codes=codes,
            reasons=reasons,
            rows=lookup.rows,
            record=FilterRecord(nodes=0, feasible=0, seconds=0.0),
            generation=lookup.generation,
        )
        self._complete(verdicts, lookup, fetched)
        if reasons and codes.all():  # no node was left for the plugins after the last that rejects
            rejecting, plugins = {reason.plugin for reason in reasons}, verdicts.record.plugins
            while plugins and plugins[-1].plugin not in rejecting:
                plugins.pop()
        verdicts.count()
        return verdicts


class CachedScores(CachedAnswers[PhaseScores]):
    """For each row the raw score of each plugin with an opinion, by line."""

    __slots__ = ("_lines",)

    def __init__(self, answer: PhaseScores, capacity: int, version: str) -> None:
        super().__init__(len(answer.plugins), np.float64, capacity, version)
        self._lines = {each.plugin: line for line, each in enumerate(answer.plugins)}

    def _numbers(self, answer: PhaseScores) -> Values | None:
        raw = {each.plugin: each.raw for each in answer.plugins}
        if self._lines.keys() != raw.keys():
            return None
        return np.array([raw[plugin] for plugin in self._lines])

    def answer(self, lookup: CacheLookup, fetched: PhaseScores | None, top: int) -> PhaseScores:
        """Return the scores, normalised over all nodes of the phase."""
        values, parts, opinions = self.values[:, lookup.at], [], []
        for plugin, line in self._lines.items():
            weight, normalization = lookup.rule.score_plugins[plugin]
            raw, normalized = values[line], normalization.apply(values[line])
            parts.append((weight, normalized))
            kept_raw, rounded = compact(raw, normalized)
            opinions.append(
                PluginScores(plugin=plugin, weight=weight, raw=kept_raw, normalized=rounded)
            )
        totals = weighted_mean(parts)
        scores = PhaseScores(
            generation=lookup.generation,
            bitmap=lookup.rows.bitmap,
            totals=np.zeros(0, SINGLE) if totals is None else totals.astype(SINGLE),
            plugins=opinions,
            rows=lookup.rows,
            record=ScoreRecord(nodes=lookup.rows.count, seconds=0.0),
        )
        self._complete(scores, lookup, fetched)
        scores.note_top(top, lookup.state.rows.names, lookup.at)
        return scores


def _in_use(
    codes: Codes, reasons: Sequence[PluginRejection]
) -> tuple[Codes, list[PluginRejection]]:
    """Return codes of those reasons alone that occur."""
    occurs = np.bincount(codes, minlength=len(reasons) + 1) > 0
    occurs[0] = False
    numbers = np.cumsum(occurs, dtype=np.uint16)
    numbers[0] = 0
    return numbers[codes], list(compress(reasons, occurs[1:].tolist()))
