"""A piece of work for any replica of a kind: a cycle, or a part of one.

The halves of a cycle make it; the pool sends it to one replica, or to several if one is slow.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import msgspec

from moorage.v1 import types_pb2 as pb


class Message(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is sent to one replica.

    Attributes:
        cycle: The cycle, without id and timeout.
        more: Further fields of the request.
        about: What the answer will be about; comes back with it, as rows may change between two
            messages of the same work.
    """

    cycle: pb.Cycle
    more: Mapping[str, object] = {}
    about: Any


class Work(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is to be done, by whichever replica.

    Attributes:
        make: Makes the message. Called when it is sent: rows mean the state of that moment.
        deadline: When the answer is of no use any more, in seconds of `loop.time()`.
        sort: Work of the same sort takes similar times for the same number of nodes.
        nodes: The number of nodes.
    """

    make: Callable[[], Message]
    deadline: float
    sort: Hashable
    nodes: int


class Answer(msgspec.Struct, frozen=True, eq=False):
    """A replica's result, the message that it is a result of, and the seconds in between."""

    result: Any
    message: Message
    seconds: float
