"""What plugins answered about equal pods, by row: for how long it is valid, and what it amounts to.

An answer about a node is valid until something has changed that its plugins depend on, and the
state knows in which generation that was. What is normalised over all nodes of a cycle is worked out
from raw scores, as replicas do.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import compress
from typing import Any, Generic, TypedDict, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cluster.state import ClusterState
from gateway.cycle import Cycle, NodeSet
from gateway.cycle.decision import (
    FilterRecord,
    PhaseName,
    PluginRecord,
    ScoreRecord,
)
from gateway.cycle.nodes import Mask, NodeRows, Rows
from gateway.cycle.scores import PluginScores, Scores
from gateway.cycle.verdicts import Codes, Reason, Verdicts
from gateway.policy.dependencies import EqualPodsRule
from gateway.replicas.filters import count_verdicts
from gateway.replicas.scorers import TOTALS, Raw, top_nodes
from moorage.plugin.values import Scope
from moorage_host.plugins.ranking import compact, weighted_mean

NEVER = -1

MOST_REASONS = 1000
"""Reasons of one kind of pods; a plugin may use another one each time."""

REASON_BYTES = 200
"""What a reason takes in addition to its text, about."""

Values = npt.NDArray[Any]

AnsweredT = TypeVar("AnsweredT")

AnyRecord = FilterRecord | ScoreRecord


class Question(msgspec.Struct, eq=False, kw_only=True):
    """What has to be asked in a phase of a cycle.

    Attributes:
        phase: The phase.
        cycle: The cycle.
        rule: When pods of its profile are equal.
        entry: What is cached about equal pods.
        rows: The nodes of the phase.
        at: Their rows, in ascending order.
        stale: How many of them are stale.
        asked: These and stale nodes of other samples; None if none is stale, or all are.
        source: The pod that replicas were asked about last, as NAMESPACE/NAME.
        generation: That of the state now.
    """

    phase: PhaseName
    cycle: Cycle
    rule: EqualPodsRule
    entry: "Entry"
    rows: NodeRows
    at: Rows
    stale: int
    asked: NodeSet | None
    source: str
    generation: int


class Answers(ABC, Generic[AnsweredT]):
    """What the plugins of one phase answered about equal pods: some numbers for each row.

    Attributes:
        version: That of the plugins.
        source: The pod that they were asked about last, as NAMESPACE/NAME.
        nbytes: What it takes in memory.
    """

    __slots__ = ("_plugins", "_valid_at", "nbytes", "source", "values", "version")

    def __init__(self, lines: int, kind: type[Any], capacity: int, version: str) -> None:
        """Know nothing yet about *capacity* rows."""
        self.values: Values = np.zeros((lines, capacity), kind)
        self.version = version
        self.source = ""
        self._valid_at = np.full(capacity, NEVER, np.int64)
        self._plugins: Sequence[tuple[str, bool]] = ()
        self.nbytes = int(self.values.nbytes + self._valid_at.nbytes)

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return len(self._valid_at)

    @abstractmethod
    def _numbers(self, answered: AnsweredT) -> Values | None:
        """Return answers as they are kept; None if they do not go with those that are."""

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

    def learn(
        self, answered: AnsweredT, record: AnyRecord, at: Rows, generation: int, pod: str
    ) -> bool:
        """Take over what plugins answered about a pod and some rows, valid for a generation.

        Returns:
            Whether it goes with what is known.
        """
        values = self._numbers(answered) if record.version == self.version else None
        if values is None:
            return False
        self._valid_at[at] = generation
        if values.size:
            self.values[:, at] = values
        # Where no nodes were left, the plugins after that did not run.
        plugins = [(each.plugin, each.skipped) for each in record.plugins]
        self._plugins = max(plugins, self._plugins, key=len)
        self.source = pod
        return True

    def _complete(self, record: AnyRecord, question: Question, fetched: AnyRecord | None) -> None:
        """Note in a record what plugins did, those included that were not asked; and the rest."""
        now = fetched or record
        by_name = {each.plugin: each for each in now.plugins}
        plugins = []
        for plugin, skipped in self._plugins:
            report = by_name.get(plugin)
            plugins.append(report or PluginRecord(plugin=plugin, seconds=0.0, skipped=skipped))
        record.plugins, record.seconds, record.shards = plugins, now.seconds, now.shards
        record.version, record.cached_from = self.version, question.source
        record.cached_nodes = question.rows.count - question.stale


class CachedVerdicts(Answers[Verdicts]):
    """For each row 0, or the number of the reason for which it was rejected."""

    __slots__ = ("_codes",)

    def __init__(self, _: Verdicts, capacity: int, version: str) -> None:
        super().__init__(1, np.uint16, capacity, version)
        self._codes: dict[Reason, int] = {}

    def _numbers(self, answered: Verdicts) -> Values | None:
        codes, code_of = [0], self._codes
        if len(code_of.keys() | answered.reasons) > MOST_REASONS:
            return None
        for reason in answered.reasons:
            if reason not in code_of:
                code_of[reason] = len(code_of) + 1
                self.nbytes += REASON_BYTES + len(reason.text)
            codes.append(code_of[reason])
        return np.array(codes, np.uint16)[answered.codes]

    def verdicts(self, question: Question, fetched: AnyRecord | None) -> Verdicts:
        """Return the verdicts that were asked for; what was *fetched* now is learned already."""
        record = FilterRecord(nodes=0, feasible=0, seconds=0.0)
        self._complete(record, question, fetched)
        codes, reasons = self.values[0, question.at], list(self._codes)
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
        return verdicts


class CachedScores(Answers[Raw]):
    """For each row the raw score of each plugin with an opinion, by line."""

    __slots__ = ("_lines",)

    def __init__(self, answered: Raw, capacity: int, version: str) -> None:
        super().__init__(len(answered), np.float64, capacity, version)
        self._lines = {plugin: line for line, plugin in enumerate(answered)}

    def _numbers(self, answered: Raw) -> Values | None:
        if self._lines.keys() != answered.keys():
            return None
        return np.array([answered[plugin] for plugin in self._lines])

    def scores(
        self, question: Question, fetched: AnyRecord | None, names: Sequence[str | None], top: int
    ) -> Scores:
        """Return the scores likewise, with the *top* nodes, of which *names* has the names."""
        record = ScoreRecord(nodes=question.rows.count, seconds=0.0)
        self._complete(record, question, fetched)
        values, parts, opinions = self.values[:, question.at], [], []
        for plugin, line in self._lines.items():
            weight, normalization = question.rule.score_plugins[plugin]
            raw, normalized = values[line], normalization.apply(values[line])
            parts.append((weight, normalized))
            kept_raw, rounded = compact(raw, normalized)
            opinions.append(
                PluginScores(plugin=plugin, weight=weight, raw=kept_raw, normalized=rounded)
            )
        totals = weighted_mean(parts)
        scores = Scores(
            generation=question.generation,
            bitmap=question.rows.bitmap,
            totals=np.zeros(0, TOTALS) if totals is None else totals.astype(TOTALS),
            plugins=opinions,
            record=record,
        )
        record.top = top_nodes(scores, top, names, question.at)
        return scores


class Entry(TypedDict, total=False):
    """What is cached about equal pods, by phase."""

    filter: CachedVerdicts
    score: CachedScores


def _in_use(codes: Codes, reasons: Sequence[Reason]) -> tuple[Codes, list[Reason]]:
    """Return codes of those reasons alone that occur."""
    occurs = np.bincount(codes, minlength=len(reasons) + 1) > 0
    occurs[0] = False
    numbers = np.cumsum(occurs, dtype=np.uint16)
    numbers[0] = 0
    return numbers[codes], list(compress(reasons, occurs[1:].tolist()))
