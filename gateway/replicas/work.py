"""A piece of work for any replica of a kind: a cycle, or a part of one.

The halves of a cycle make it; the pool sends it to one replica, or to several if one is slow.
"""

from collections.abc import Callable, Hashable
from typing import Any

import msgspec


class Work(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is to be done, by whichever replica.

    Attributes:
        fill: Fills a request of a session, but for the cycle's id and timeout, and returns what the
            answer will be about. Called when it is sent: rows mean the state of that moment, and
            may have changed when the same work is sent again.
        deadline: When the answer is of no use any more, in seconds of `loop.time()`.
        sort: Work of the same sort takes similar times for the same number of nodes.
        nodes: The number of nodes.
    """

    fill: Callable[[Any], Any]
    deadline: float
    sort: Hashable
    nodes: int


class Answer(msgspec.Struct, frozen=True, eq=False):
    """A replica's result, what it is about, and how many seconds it took."""

    result: Any
    about: Any
    seconds: float
