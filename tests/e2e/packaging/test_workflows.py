"""The workflows are valid: actionlint, built from its Go module, finds nothing in them."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.deploy.wheel import ROOT
from tools.build import find

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def problems(*workflows: Path) -> str:
    # shellcheck and pyflakes are used where they happen to be installed, so not at all.
    command = [str(find("actionlint")), "-no-color", "-shellcheck=", "-pyflakes="]
    run = subprocess.run(
        [*command, *map(str, workflows)], capture_output=True, text=True, check=False, timeout=280
    )
    assert run.returncode in (0, 1), run.stderr
    return run.stdout


@pytest.mark.timeout(300)
def test_actionlint_finds_nothing() -> None:
    assert WORKFLOWS
    assert problems(*WORKFLOWS) == ""


@pytest.mark.timeout(300)
def test_actionlint_finds_a_job_that_is_not_there(tmp_path: Path) -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    broken = tmp_path / "release.yml"
    broken.write_text(re.sub(r"needs: build$", "needs: biuld", text, flags=re.M))
    assert 'needs job "biuld" which does not exist' in problems(broken)
