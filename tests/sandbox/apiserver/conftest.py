"""One server and one client for each test."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from sandbox.apiserver import ApiServer
from tests.sandbox.apiserver.support import Http


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


@pytest.fixture
async def http(api: ApiServer) -> AsyncIterator[Http]:
    async with aiohttp.ClientSession(api.url) as session:
        yield Http(session)
