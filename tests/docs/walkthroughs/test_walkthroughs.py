"""Pages that are run from top to bottom work as they are written.

All blocks run in order, in one session. Steps of the tutorial that need a real control plane or the
package index are left to tests/e2e/packaging/test_tutorial.py, which runs all of it with the
release's kubectl and kube-scheduler.
"""

import os
import sys
from pathlib import Path

import pytest

from tests.docs.walkthroughs.page import EXERCISES, PODS, TUTORIAL, pattern, steps
from tests.docs.walkthroughs.session import session
from tests.needs import needed

REAL = ("Set up", "8. Beside a real kube-scheduler", "9. Install it in the cluster", PODS)
"""Sections of the tutorial that need the package index or a real control plane."""

STOCK = "7. One node, without a plugin"
"""The section of the exercises that tests/e2e/placement runs on a stock kube-scheduler."""


@pytest.fixture
def kubectl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have kubectl in PATH, wherever it is."""
    folder = Path(needed("kubectl")).parent
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{folder}")


@pytest.mark.timeout(300)
async def test_what_needs_no_cluster_of_the_tutorial_works_as_shown(
    tmp_path: Path, kubectl: None
) -> None:
    todo = steps(TUTORIAL)
    assert set(REAL) <= {step.section for step in todo}
    async with session(tmp_path, Path(sys.executable).parent) as reader:
        await reader.run(step for step in todo if step.section not in REAL)


@pytest.mark.timeout(300)
async def test_the_exercises_work_as_shown(tmp_path: Path, kubectl: None) -> None:
    async with session(tmp_path, Path(sys.executable).parent) as reader:
        await reader.run(step for step in steps(EXERCISES) if step.section != STOCK)


def test_other_output_than_shown_is_noticed() -> None:
    shown = pattern("NAME  AGE\n...\nnode-1  3s\nready in 1.6 s: ... tried\n")
    text = "NAME    AGE\nx\ny\nnode-1  12s\nready in 20.1 s: 3 pods are tried"
    assert shown.fullmatch(text)
    for other in ("NAMES", "node-2", "pods are refused"):
        word = {"NAMES": "NAME", "node-2": "node-1", "pods are refused": "pods are tried"}[other]
        assert not shown.fullmatch(text.replace(word, other))
