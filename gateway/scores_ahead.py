"""Scores that are ready when prioritize asks for them; a part of `gateway.cycle`.

Scoring goes straight on after the filter half, while kube-scheduler does its own. Where the filters
of a profile have ruled out the same nodes as before, it begins beside the filter half, with the
nodes that will probably be left.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.calls import FilterOutcome, SchedulingCall
from gateway.decisions import Decision
from gateway.filter_half import Filtered
from gateway.metrics import CycleMetrics
from gateway.nodes import UNKNOWN, Mask, Rows
from gateway.score_half import Scored, ScoreHalf
from gateway.subject import Subject

REMEMBERED_SCORES = 256
"""Pods whose scores wait for a prioritize call; one that never comes must not cost memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """The scores of a pod's nodes, on their way; normalised for exactly these nodes.

    kube-scheduler asks for them within the filter call's own time, or its attempt has ended.
    """

    subject: Subject
    scored: "asyncio.Task[Scored]"
    scores: "asyncio.Future[Sequence[int]]"

    def answers(self, call: SchedulingCall) -> bool:
        """Whether these are the scores that *call* asks for, and of the same attempt."""
        in_time = asyncio.get_running_loop().time() < self.subject.deadline
        return in_time and not call.plugin and _same(self.subject.names, call.node_names)

    async def collect(self, names: Sequence[str]) -> Sequence[int]:
        """Return the scores in the order of *names*, the same nodes."""
        scores = await asyncio.shield(self.scores)
        if not scores or names == self.subject.names:
            return scores
        by_name = dict(zip(self.subject.names, scores, strict=True))
        return [by_name[name] for name in names]

    def note(self, decision: Decision) -> None:
        """Put into the decision what came of it."""
        if self.scored.cancelled():
            return
        if error := self.scored.exception():
            decision.score_error = str(error)
        else:
            decision.score = self.scored.result().record


class Habit:
    """What a profile's filters ruled out, each node the last time that it was asked about.

    Attributes:
        steady: The last cycle changed nothing of it.
    """

    def __init__(self) -> None:
        self.steady = False
        self._version = -1
        self._rejected = np.zeros(0, np.bool_)  # by row; the last one is of unknown nodes

    def left(self, where: Rows, version: int) -> Mask | None:
        """Return which nodes will probably be left, if the rows still mean the same."""
        return ~self._rejected[where] if self.steady and version == self._version else None

    def learn(self, filtered: Filtered, version: int, capacity: int, *, claimed: bool) -> None:
        """Remember what a cycle ruled out; a claim leaves one of the nodes that are scored."""
        if version != self._version:
            self._version, self._rejected = version, np.zeros(capacity + 1, np.bool_)
            self._rejected[UNKNOWN] = True
        where, out = filtered.found.where, ~filtered.kept
        self.steady = not claimed and bool((self._rejected[where] == out).all())
        self._rejected[where] = out
        self._rejected[UNKNOWN] = True


class ScoresAhead:
    """Has nodes scored before anyone asks."""

    def __init__(self, score_half: ScoreHalf, metrics: CycleMetrics) -> None:
        self._score_half = score_half
        self._lookup = score_half.lookup
        self._metrics = metrics
        self._waiting: OrderedDict[str, Ahead] = OrderedDict()
        self._habits: dict[str, Habit] = {}

    async def expect(self, subject: Subject, profile: str) -> Ahead | None:
        """Begin to score the nodes that the profile's filters will leave, if that is likely."""
        await asyncio.sleep(0)  # the filters are asked first
        habit = self._habits.get(profile)
        if habit is None or subject.plugin or subject.given is not None:
            return None
        where = self._lookup.find(subject.names, None).where
        kept = habit.left(where, self._lookup.rows_version)
        if kept is None or np.count_nonzero(kept) < 2:
            return None  # kube-scheduler takes a single node without asking for scores
        left = self._lookup.chosen(subject.names, kept)
        return self._begin(subject.restricted(left))

    def begin(
        self,
        subject: Subject,
        filtered: Filtered,
        outcome: FilterOutcome,
        decision: Decision,
        expected: Ahead | None,
    ) -> Ahead | None:
        """Score the feasible nodes, or go on with what was expected; `take` gives the scores.

        Args:
            subject: The pod and its nodes.
            filtered: What the filters left.
            outcome: What a claim left of it.
            decision: What comes of it is noted there.
            expected: What was begun beside the filter half.
        """
        feasible, claimed = outcome.feasible, outcome is not filtered.outcome
        right = expected is not None and expected.subject.names is feasible
        if expected is not None:
            self._metrics.expected(right=right)
        if not right and not subject.plugin and subject.given is None:
            habit = self._habits.setdefault(decision.profile, Habit())
            version, capacity = self._lookup.rows_version, self._lookup.capacity
            habit.learn(filtered, version, capacity, claimed=claimed)
        if expected is not None and right:
            ahead = expected
        else:
            give_up(expected)
            if len(feasible) < 2 or subject.plugin:
                return None  # kube-scheduler takes a single node without asking for scores
            ahead = self._begin(subject.restricted(feasible))
        ahead.scored.add_done_callback(lambda _: ahead.note(decision))
        self._waiting[subject.pod.uid] = ahead
        if len(self._waiting) > REMEMBERED_SCORES:
            self._waiting.popitem(last=False)
        return ahead

    def take(self, uid: str) -> Ahead | None:
        """Return the scores of a pod, once."""
        return self._waiting.pop(uid, None)

    def _begin(self, subject: Subject) -> Ahead:
        scored = asyncio.create_task(self._score_half.run(subject))
        scores: asyncio.Future[Sequence[int]] = asyncio.get_running_loop().create_future()
        scored.add_done_callback(lambda _: _tell(scored, scores))
        return Ahead(subject=subject, scored=scored, scores=scores)


def give_up(expected: Ahead | None) -> None:
    """Stop what goes on in vain."""
    if expected is not None:
        expected.scored.cancel()


def _tell(scored: "asyncio.Task[Scored]", scores: "asyncio.Future[Sequence[int]]") -> None:
    if scored.cancelled():
        scores.cancel()
    elif error := scored.exception():
        scores.set_exception(error)
        scores.exception()  # perhaps nobody asks for it
    else:
        scores.set_result(scored.result().scores())


def _same(some: Sequence[str], others: Sequence[str]) -> bool:
    return len(some) == len(others) and (some == others or set(some) == set(others))
