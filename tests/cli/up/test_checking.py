"""Plugin files are tried in a process of their own, whatever they do to it."""

from pathlib import Path

import pytest

from cli.up.checking import check
from tests.cli.up.test_up import MAX_TEMPERATURE


async def test_a_file_that_can_be_used_gives_policy_and_kinds(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(f"print('{{}}')\n{MAX_TEMPERATURE}")
    found = await check(None, [file])
    assert found.problem == ""
    assert found.kinds == ("filter",)
    assert "name: MaxTemperature" in found.text


async def test_a_weight_from_the_command_line_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(
        "from moorage import ScorePlugin\nclass Heavy(ScorePlugin):\n"
        "    def score_node(self, pod, node):\n        return 1.0\n"
    )
    assert "weight: 20" in (await check(None, [file], {file: 20})).text


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("from moorage import (\n", "{file}:1: SyntaxError: '(' was never closed"),
        (
            "\n    async def start(self):\n        raise ValueError('boom')\n",
            "{file}:14: plugin MaxTemperature of profile moorage does not start: ValueError: boom",
        ),
        (
            "import os, sys\nprint('bye', file=sys.stderr, flush=True)\nos._exit(0)\n",
            "loading the plugins ended the process: bye",
        ),
    ],
)
async def test_what_is_wrong_is_named_with_its_place_first(
    tmp_path: Path, code: str, problem: str
) -> None:
    file = tmp_path / "a.py"
    before = "" if code.startswith("from") else MAX_TEMPERATURE
    file.write_text(before + code)
    assert (await check(None, [file])).problem == problem.format(file=file)


async def test_a_file_that_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.up.checking.CHECK_SECONDS", 0.5)
    (tmp_path / "a.py").write_text("while True: pass\n")
    found = await check(None, [tmp_path / "a.py"])
    assert found.problem == "the plugins are not loaded after 0.5 s"
