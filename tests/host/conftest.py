import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.host.rpc.support import Tiny, run_tiny


@pytest.fixture
async def start_tiny() -> AsyncIterator[Callable[..., Awaitable[Tiny]]]:
    """Start the tiny service with options; what still runs after the test is killed."""
    async with AsyncExitStack() as stack:

        async def start(*options: str, errors: int = asyncio.subprocess.PIPE) -> Tiny:
            tiny = await run_tiny(*options, errors=errors)
            stack.push_async_callback(_kill, tiny)
            return tiny

        yield start


async def _kill(tiny: Tiny) -> None:
    if tiny.process.returncode is None:
        tiny.process.kill()
        await tiny.process.communicate()
