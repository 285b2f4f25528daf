from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.host.rpc.support import Tiny, run_tiny


@pytest.fixture
async def start_tiny() -> AsyncIterator[Callable[..., Awaitable[Tiny]]]:
    """Start the tiny service with options; what still runs after the test is killed."""
    async with AsyncExitStack() as stack:

        async def start(*options: str, errors: int | None = None) -> Tiny:
            return await stack.enter_async_context(run_tiny(*options, errors=errors))

        yield start
