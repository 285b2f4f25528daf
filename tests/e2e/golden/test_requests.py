"""What is recorded of kube-apiserver's answers is still what it says."""

import json
from pathlib import Path

import pytest

from tools.golden.requests import RECORDED, ask
from tools.planes.real import RealPlane


@pytest.mark.timeout(300)  # some five hundred requests, and a second for each watch
async def test_the_recording_is_what_kube_apiserver_says(tmp_path: Path) -> None:
    plane = RealPlane(tmp_path, deployed=False)
    await plane.start()
    try:
        said = json.loads(json.dumps(await ask(plane)))
    finally:
        await plane.stop()
    assert json.loads(RECORDED.read_text()) == said, (
        "record it again with: python -m tools.golden.requests"
    )
