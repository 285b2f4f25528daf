"""A lane for calls by hand: a few at a time, a few that wait, and the rest is refused.

The interceptor takes a call into the lane before it reads the call's message, so that neither the
messages of many callers nor the answers to them keep a service from the sessions of gateways.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc

from moorage_host.rpc.errors import CallError
from moorage_host.turns import Turns

REFUSAL_SECONDS = 0.25
"""How long a refused call waits for its refusal, as most callers try again at once."""

SLOW_REFUSALS = 8
"""Calls that wait for that side by side; more are refused at once."""


class Lane:
    """Takes calls of some methods."""

    def __init__(self, *methods: str, calls: int, waiting: int, message_bytes: int) -> None:
        """Take calls of *methods*.

        Args:
            methods: As gRPC names them, "/PACKAGE.SERVICE/METHOD".
            calls: How many run at a time.
            waiting: How many may wait; more get RESOURCE_EXHAUSTED.
            message_bytes: The largest message.
        """
        self.methods = frozenset(methods)
        self.message_bytes = message_bytes
        self._turns = Turns(calls, waiting)
        self._refusals = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Run a call inside the block.

        Raises:
            CallError: Too many wait already (RESOURCE_EXHAUSTED).
        """
        if self._turns.is_full:
            await self._slow_down()
            raise CallError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{self._turns.running} calls by hand run and {self._turns.waiting} wait: call "
                "again later, or raise --by-hand-calls or --by-hand-waiting of the service",
                reason="BY_HAND_BUSY",
            )
        async with self._turns.turn():
            yield

    def check(self, message: bytes) -> None:
        """Refuse a message that is too large.

        Raises:
            CallError: It is (INVALID_ARGUMENT).
        """
        if len(message) > self.message_bytes:
            raise CallError(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"the message has {len(message)} bytes: a call by hand may have "
                f"{self.message_bytes}; send fewer nodes, or raise --by-hand-bytes of the service",
            )

    async def _slow_down(self) -> None:
        if self._refusals >= SLOW_REFUSALS:
            return
        self._refusals += 1
        try:
            await asyncio.sleep(REFUSAL_SECONDS)
        finally:
            self._refusals -= 1
