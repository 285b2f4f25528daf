from collections.abc import AsyncIterator

import pytest

from sandbox.apiserver import ApiServer
from tests.sandbox.scheduler.support import World
from tools.inprocess.extender import ScriptedExtender


@pytest.fixture
async def world() -> AsyncIterator[World]:
    extender = ScriptedExtender()
    await extender.start()
    async with ApiServer() as server:
        world = World(server, extender)
        extender.on["bind"] = world.binds
        yield world
    await extender.stop()
