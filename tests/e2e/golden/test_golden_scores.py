"""What is recorded of kube-scheduler's scores and rejections is still what it says."""

import json

import pytest

from tests.scenarios.world import World
from tools.golden.oracle import RECORDED, ask

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_recording_is_what_kube_scheduler_says(bare: World) -> None:
    said = json.loads(json.dumps(await ask(bare.plane, bare.client)))
    assert json.loads(RECORDED.read_text()) == said, (
        "record it again with: python -m tools.golden.oracle"
    )
