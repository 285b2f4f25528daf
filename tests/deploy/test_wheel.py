"""The installed wheel works where others have modules of the same names."""

from pathlib import Path

import pytest

from tests.deploy.wheel import APPLICATIONS, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder, with modules of the names that Moorage's have."""
    for name in APPLICATIONS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise AssertionError('imported')\n")
    return tmp_path


def test_the_command_schedules_pods_outside_of_the_repository(programs: Path, folder: Path) -> None:
    out = run(programs / "moorage", "up", "--once", "--nodes=3", "--pods=3", folder=folder)
    assert "3 of 3 pods bound" in out


def test_a_new_plugin_runs_there(programs: Path, folder: Path) -> None:
    run(programs / "moorage", "new-plugin", "OfMyOwn", folder=folder)
    pods = ("up", "--once", "--nodes=2", "--pods=1")
    out = run(programs / "moorage", *pods, "--plugin", "of_my_own.py", folder=folder)
    assert "1 of 1 pods bound" in out


@pytest.mark.parametrize("process", ["gateway", "services.filter", "sandbox.scheduler"])
def test_each_process_can_be_started_by_its_module(
    programs: Path, folder: Path, process: str
) -> None:
    usage = run(programs / "python", "-m", "moorage_apps", process, "--help", folder=folder)
    assert usage.startswith(f"usage: python -m moorage_apps {process} ")
    assert "--log-format" in usage


def test_the_command_and_the_library_have_the_same_version(programs: Path, folder: Path) -> None:
    version = run(programs / "moorage", "--version", folder=folder).split()[-1]
    code = "import importlib.metadata, moorage; print(importlib.metadata.version('moorage'))"
    assert run(programs / "python", "-c", code, folder=folder).strip() == version


def test_importing_the_library_imports_none_of_the_services_dependencies(
    programs: Path, folder: Path
) -> None:
    code = (
        "import sys, moorage, moorage.testing\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & set(sys.argv[1:])))"
    )
    heavy = ("grpc", "google", "aiohttp", "kubernetes_asyncio", "structlog", *APPLICATIONS)
    assert run(programs / "python", "-c", code, *heavy, folder=folder).strip() == "[]"
