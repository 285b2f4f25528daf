"""A piece of work for any replica of a kind: a cycle, or a shard of one.

The phases of a cycle make it; the pool sends it to one replica, or to several if one is slow.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import msgspec

from gateway.calls import CallFailedError

WaitUntilIdle = Callable[[], Awaitable[None]]
"""Waits until no cycle runs or waits, but not long."""


ReportRetry = Callable[[str, str], None]
"""Called with a plugin that asks for another attempt on pods that it rejected, and why."""


def ignore_retry(plugin: str, reason: str) -> None:
    """Do nothing: these plugins reject no pods."""
    del plugin, reason


class VersionGoneError(CallFailedError):
    """No replica has the version of plugins that work is for."""


class Work(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A request to any replica of a kind.

    Attributes:
        fill: Fills in a session's request, except for the cycle's id and timeout, and returns what
            the answer will be about. Called when the request is sent: rows refer to the state of
            that moment, which may differ when the same work is sent again.
        deadline: When the answer becomes useless, in seconds of `loop.time()`.
        sort: Work of the same sort takes similar times for the same number of nodes.
        nodes: The number of nodes.
        version: Only replicas with this version of plugins may answer; empty if any may.
    """

    fill: Callable[[Any], Any]
    deadline: float
    sort: Hashable
    nodes: int
    version: str = ""


class Answer(msgspec.Struct, frozen=True, eq=False):
    """A replica's result, what it is about, how long it took, and the replica's version."""

    result: Any
    about: Any
    seconds: float
    version: str = ""


class Sent(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Work that one replica has been sent: its answer to come, what that is about, and when."""

    answer: asyncio.Future[Any]
    about: Any
    start: float
