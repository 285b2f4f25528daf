"""Scores that are ready when prioritize asks for them; a part of `gateway.cycle.runner`.

Scoring goes straight on after the filter half, while kube-scheduler does its own. If prioritize
comes sooner than that takes, and the filters of a profile have ruled out the same nodes as before,
it begins beside the filter half, with the nodes that will probably be left.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from gateway.cache.score_cache import RememberedScores
from gateway.calls import FilterOutcome, SchedulingCall
from gateway.cycle.filtering import Filtered
from gateway.cycle.habits import Habit, Pauses
from gateway.cycle.node_set import NodeLookup
from gateway.cycle.request import Subject
from gateway.cycle.scoring import Scored
from gateway.decisions.log import Decision
from gateway.metrics import CycleMetrics

REMEMBERED_SCORES = 256
"""Pods whose scores wait for a prioritize call; one that never comes must not cost memory."""


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
        loop.call_soon(loop.call_soon, self._now)
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

    def __init__(
        self, scores: RememberedScores, lookup: NodeLookup, metrics: CycleMetrics, pauses: Pauses
    ) -> None:
        self._scores = scores
        self._lookup = lookup
        self._metrics = metrics
        self._waiting: OrderedDict[str, Ahead] = OrderedDict()
        self._habits: dict[str, Habit] = {}
        self._pauses = pauses

    def expect(self, subject: Subject, profile: str) -> Ahead | None:
        """Begin to score the nodes that the profile's filters will leave, if that is likely.

        Not if there is time enough after the filter half: the two would hold each other up.
        """
        if subject.given is not None:
            return None
        # Whatever comes of it, the names are looked up and chosen while the filters work.
        where = self._lookup.find(subject.names, None).where
        habit = self._habits.get(profile)
        if habit is None or subject.plugin:
            return None
        kept = habit.left(where, self._lookup.rows_version)
        if kept is None:
            return None
        left = self._lookup.chosen(subject.names, kept)
        if len(left) < 2:
            return None  # kube-scheduler takes a single node without asking for scores
        if not self._pauses.are_short():
            return None
        return self._begin(subject.restricted(left), early=True)

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
            ahead = self._begin(subject.restricted(feasible), early=False)
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
            self._pauses.paused(asyncio.get_running_loop().time() - ahead.filtered_at)
        return ahead

    def forget(self, uid: str) -> None:
        """Keep the scores of a pod no longer."""
        self._waiting.pop(uid, None)

    def _begin(self, subject: Subject, *, early: bool) -> Ahead:
        loop = asyncio.get_running_loop()
        start = loop.time()
        scored = loop.create_task(self._scores.run(subject))
        scores: asyncio.Future[Sequence[int]] = loop.create_future()

        def tell(_: object) -> None:
            if not early and _replicas_scored(scored):
                self._pauses.scored(loop.time() - start)
            _tell(scored, scores)

        scored.add_done_callback(tell)
        return Ahead(subject=subject, scored=scored, scores=scores)


def give_up(expected: Ahead | None) -> None:
    """Stop what goes on in vain."""
    if expected is not None:
        expected.scored.cancel()


def _replicas_scored(scored: "asyncio.Task[Scored]") -> bool:
    """Whether it took as long as it takes when not all scores are remembered."""
    if scored.cancelled() or scored.exception():
        return True
    record = scored.result().record
    return record.remembered_nodes < record.nodes


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
