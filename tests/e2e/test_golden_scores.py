"""What is recorded of kube-scheduler's scores and rejections is still what it says."""

import json

from tests.e2e.golden_oracle import RECORDED, ask


async def test_the_recording_is_what_kube_scheduler_says() -> None:
    said = json.loads(json.dumps(await ask()))
    assert json.loads(RECORDED.read_text()) == said, (
        "record it again with: python -m tests.e2e.golden_oracle"
    )
