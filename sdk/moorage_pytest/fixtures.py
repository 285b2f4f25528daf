"""The fixtures. They import what they need when a test asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from moorage_pytest.simulation import Simulate


@pytest.fixture
def moorage_simulate(tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    """Place pods on nodes with a plugin, as a cluster would.

    kube-scheduler's own plugins filter and score too. It is a process of about a second; for one
    plugin alone use `moorage.testing`, which takes milliseconds.
    """
    from moorage_pytest.simulation import Simulate

    def folder() -> Path:
        return tmp_path_factory.mktemp("moorage")

    return Simulate(folder)
