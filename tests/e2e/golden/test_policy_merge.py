"""What is recorded of kube-scheduler's merge of plugin sets is still what it does."""

import json

from tools.build import kubernetes_version
from tools.golden.policies import RECORDED, ask


def test_the_recording_is_what_kube_scheduler_says() -> None:
    recorded = json.loads(RECORDED.read_text())
    assert recorded == {"version": kubernetes_version(), "cases": ask()}, (
        "record it again with: python -m tools.golden.policies"
    )
