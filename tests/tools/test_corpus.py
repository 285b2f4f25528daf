"""Everything that fuzzing ever found, and the cases that reach furthest, once each."""

import json

import pytest

from tests.forked import forked
from tools.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS)
async def test_nothing_is_wrong_with_any_case_of_the_corpus(target: str) -> None:
    async with forked("tools.fuzz.replay", target) as replay:
        line = await replay.stdout.readline()
        code, errors = await replay.ended()
    assert code == 0, errors
    result = json.loads(line)
    assert result["cases"] > 0
    assert not result["wrong"], "\n".join(f"{k}: {v}" for k, v in result["wrong"].items())
