"""How a session ends, whatever it was that ended its stream."""

import asyncio
from typing import NoReturn

import grpc.aio

ENDINGS = (grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError)
"""Whatever ends a stream."""


class SessionLostError(Exception):
    """The stream broke; another replica may do the work."""


class SessionRefusedError(Exception):
    """The replica cannot use the policy."""


def lose(error: BaseException) -> NoReturn:
    """Turn what ends a stream into one exception."""
    if isinstance(error, grpc.aio.AioRpcError):
        raise SessionLostError(f"{error.code().name}: {error.details()}") from error
    if isinstance(error, asyncio.InvalidStateError):
        raise SessionLostError(f"the stream has ended: {error}") from error
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise error
    raise SessionLostError("the stream was given up") from error
