"""Scores that are ready when prioritize asks for them; a part of `gateway.cycle`.

Scoring goes straight on after the filter half, while kube-scheduler does its own. If prioritize
comes sooner than that takes, and the filters of a profile have ruled out the same nodes as before,
it begins beside the filter half, with the nodes that will probably be left.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec
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


DECAY = 0.9
"""How much what was seen before counts beside the newest, in what is usual."""


class Ahead(msgspec.Struct, kw_only=True, eq=False):
    """The scores of a pod's nodes, on their way; normalised for exactly these nodes.

    kube-scheduler asks for them within the filter call's own time, or its attempt has ended.

    Attributes:
        filtered_at: When the filter half was over, in seconds of `loop.time()`.
    """

    subject: Subject
    scored: "asyncio.Task[Scored]"
    scores: "asyncio.Future[Sequence[int]]"
    filtered_at: float = 0.0

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
        self._left = np.zeros(0, np.bool_)  # by row; the last one is of unknown nodes

    def left(self, where: Rows, version: int) -> Mask | None:
        """Return which nodes will probably be left, if the rows still mean the same."""
        return self._left[where] if self.steady and version == self._version else None

    def learn(self, filtered: Filtered, version: int, capacity: int, *, claimed: bool) -> None:
        """Remember what a cycle ruled out; a claim leaves one of the nodes that are scored."""
        if version != self._version:
            self._version, self._left = version, np.ones(capacity + 1, np.bool_)
            self._left[UNKNOWN] = False
        where, kept = filtered.found.where, filtered.kept
        self.steady = not claimed and bool((self._left[where] == kept).all())
        self._left[where] = kept
        self._left[UNKNOWN] = False


class Expecting:
    """Has something begun beside the filter half, once the filters have been asked.

    Attributes:
        ahead: What was begun, if it was.
    """

    def __init__(self, begin: Callable[[], Ahead | None]) -> None:
        self.ahead: Ahead | None = None
        self._begin = begin
        loop = asyncio.get_running_loop()
        # The message to the filter is written in the next turn of the loop.
        self._handle = loop.call_soon(loop.call_soon, self._now)
        self._is_over = False

    def _now(self) -> None:
        if not self._is_over:
            self.ahead = self._begin()

    def end(self) -> Ahead | None:
        """Begin nothing any more; return what was begun."""
        self._is_over = True
        return self.ahead


class ScoresAhead:
    """Has nodes scored before anyone asks."""

    def __init__(self, score_half: ScoreHalf, metrics: CycleMetrics) -> None:
        self._score_half = score_half
        self._lookup = score_half.lookup
        self._metrics = metrics
        self._waiting: OrderedDict[str, Ahead] = OrderedDict()
        self._habits: dict[str, Habit] = {}
        self._pause = 0.0  # usual seconds from the end of the filter half to prioritize
        self._needed = 0.0  # usual seconds that scoring takes

    def expect(self, subject: Subject, profile: str) -> Ahead | None:
        """Begin to score the nodes that the profile's filters will leave, if that is likely.

        Not if there is time enough after the filter half: the two would hold each other up.
        """
        habit = self._habits.get(profile)
        if habit is None or subject.plugin or subject.given is not None:
            return None
        if self._pause > self._needed:
            return None
        where = self._lookup.find(subject.names, None).where
        kept = habit.left(where, self._lookup.rows_version)
        if kept is None:
            return None
        left = self._lookup.chosen(subject.names, kept)
        if len(left) < 2:
            return None  # kube-scheduler takes a single node without asking for scores
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
        ahead.filtered_at = asyncio.get_running_loop().time()
        ahead.scored.add_done_callback(lambda _: ahead.note(decision))
        self._waiting[subject.pod.uid] = ahead
        if len(self._waiting) > REMEMBERED_SCORES:
            self._waiting.popitem(last=False)
        return ahead

    def take(self, uid: str) -> Ahead | None:
        """Return the scores of a pod, once, to a prioritize call."""
        ahead = self._waiting.pop(uid, None)
        if ahead is not None:
            pause = asyncio.get_running_loop().time() - ahead.filtered_at
            self._pause = DECAY * self._pause + (1 - DECAY) * pause
        return ahead

    def forget(self, uid: str) -> None:
        """Keep the scores of a pod no longer."""
        self._waiting.pop(uid, None)

    def _begin(self, subject: Subject) -> Ahead:
        loop = asyncio.get_running_loop()
        start = loop.time()
        scored = loop.create_task(self._score_half.run(subject))
        scores: asyncio.Future[Sequence[int]] = loop.create_future()

        def tell(_: object) -> None:
            self._needed = DECAY * self._needed + (1 - DECAY) * (loop.time() - start)
            _tell(scored, scores)

        scored.add_done_callback(tell)
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
