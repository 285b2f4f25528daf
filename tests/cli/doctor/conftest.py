"""One installation for all tests of doctor."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.cli.doctor.installed import Installed, installation


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installed]:
    async with installation(tmp_path_factory.mktemp("installed")) as running:
        yield running
