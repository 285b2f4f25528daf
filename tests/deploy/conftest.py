"""The wheel, and an environment that has it and nothing of the repository: made once."""

from pathlib import Path

import pytest

from tests.deploy.wheel import build_wheel, environment_with


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `python` and `moorage` of an environment with the wheel."""
    return environment_with(wheel, tmp_path_factory.mktemp("environment"))
