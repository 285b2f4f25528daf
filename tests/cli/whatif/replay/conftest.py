"""The journal of all tests of this folder, recorded once."""

from pathlib import Path

import pytest

from tests.cli.whatif.replay.recorded import record


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of hundreds of pods."""
    return record(tmp_path_factory.mktemp("recorded"))
