from collections.abc import AsyncIterator

import pytest

from sandbox.apiserver import ApiServer


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server
