"""The tutorial works as it is written, up to the step that needs a real kube-scheduler.

All blocks run in order, in one session. Without kubectl a stand-in changes the cluster, and what
kubectl would print is not compared. tests/e2e/packaging/test_tutorial.py runs the whole page, with
the installation, the release's kubectl and kube-scheduler.
"""

import sys
from pathlib import Path

import pytest

from tests.docs.tutorial.page import pattern, steps
from tests.docs.tutorial.session import session

REAL = ("Set up", "8. Beside a real kube-scheduler")
"""Sections that need the package index or a real control plane."""


@pytest.mark.timeout(300)
async def test_all_that_needs_no_cluster_works_as_shown(tmp_path: Path) -> None:
    todo = steps()
    assert set(REAL) <= {step.section for step in todo}
    async with session(tmp_path, Path(sys.executable).parent) as reader:
        await reader.run(step for step in todo if step.section not in REAL)


def test_other_output_than_shown_is_noticed() -> None:
    shown = pattern("NAME  AGE\n...\nnode-1  3s\nready in 1.6 s: ... tried\n")
    text = "NAME    AGE\nx\ny\nnode-1  12s\nready in 20.1 s: 3 pods are tried"
    assert shown.fullmatch(text)
    for other in ("NAMES", "node-2", "pods are refused"):
        word = {"NAMES": "NAME", "node-2": "node-1", "pods are refused": "pods are tried"}[other]
        assert not shown.fullmatch(text.replace(word, other))
