from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.forked import Running, forked
from tests.host.rpc.support import tiny_options


@pytest.fixture
async def start_tiny() -> AsyncIterator[Callable[..., Awaitable[Running]]]:
    """Start the tiny service with options; what still runs after the test is killed."""
    async with AsyncExitStack() as stack:

        async def start(*options: str, errors: int | None = None) -> Running:
            tiny = forked("tests.host.rpc.tiny", *tiny_options(*options), errors=errors)
            return await stack.enter_async_context(tiny)

        yield start
