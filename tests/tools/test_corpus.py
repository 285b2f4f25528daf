"""Everything that fuzzing ever found, and the cases that reach furthest, once each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_wrong_with_any_case_of_the_corpus(target: str) -> None:
    command = [sys.executable, "-m", "tools.fuzz.replay", target]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=110)
    result = json.loads(run.stdout)
    assert result["cases"] > 0
    assert not result["wrong"], "\n".join(f"{k}: {v}" for k, v in result["wrong"].items())
