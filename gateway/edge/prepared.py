"""Answers to prioritize calls that are written before the calls come.

The scores are there while kube-scheduler still reads the answer to its filter call and scores nodes
itself: time enough to write thousands of them down.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from gateway.calls import FilterOutcome
from gateway.edge.json.answers import prioritize_answer
from gateway.edge.json.names import NodeNames

_KEPT = 4  # answers; one for each scheduler that may be between filter and prioritize

Scores = Sequence[int]


class PreparedAnswers:
    """Writes answers, and keeps the newest that nobody has asked for yet."""

    def __init__(self, *, omit_zeros: bool) -> None:
        """Leave nodes with a score of 0 out if *omit_zeros*."""
        self._omit_zeros = omit_zeros
        self._newest: deque[tuple[Scores, NodeNames, bytes]] = deque(maxlen=_KEPT)

    def expect(self, outcome: FilterOutcome, names: NodeNames) -> None:
        """Write the answer as soon as the scores are there; *names* are the feasible nodes."""
        if outcome.ahead is not None:
            outcome.ahead.add_done_callback(lambda ahead: self._prepare(ahead, names))

    def answer(self, names: NodeNames, scores: Scores) -> bytes:
        """Return a HostPriorityList.

        Raises:
            ValueError: A score is not a whole number from 0 to 100, or there are too few or many.
        """
        for prepared in self._newest:
            if prepared[0] is scores and prepared[1] is names:
                self._newest.remove(prepared)
                return prepared[2]
        return prioritize_answer(names, scores, omit_zeros=self._omit_zeros)

    def _prepare(self, ahead: "asyncio.Future[Scores]", names: NodeNames) -> None:
        if ahead.cancelled() or ahead.exception() or not ahead.result():
            return
        scores = ahead.result()
        with suppress(ValueError):  # whoever asks for them is told
            text = prioritize_answer(names, scores, omit_zeros=self._omit_zeros)
            self._newest.append((scores, names, text))
