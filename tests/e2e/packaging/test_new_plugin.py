"""What `moorage new-plugin` writes works where Moorage was installed from its lock.

It needs the package index.
"""

import re
from pathlib import Path

import pytest

from tests.deploy.wheel import ROOT, build_wheel, run


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install Moorage into an empty environment; return the folder with its programs."""
    folder = tmp_path_factory.mktemp("installed")
    run("python3", "-m", "venv", folder / "moorage", folder=folder)
    programs = folder / "moorage" / "bin"
    lock = ROOT / "requirements-image.lock"
    run(programs / "pip", "install", "-q", "--require-hashes", "-r", lock, folder=folder)
    run(programs / "pip", "install", "-q", "--no-deps", build_wheel(folder), folder=folder)
    return programs


@pytest.mark.timeout(600)
def test_the_locked_dependencies_are_all_that_is_needed(programs: Path, tmp_path: Path) -> None:
    out = run(programs / "moorage", "up", "--once", "--nodes=3", "--pods=3", folder=tmp_path)
    assert "3 of 3 pods bound" in out
    assert run(programs / "pip", "check", folder=tmp_path).startswith("No broken requirements")


@pytest.mark.timeout(600)
def test_the_printed_command_installs_pytest_where_it_is_missing(
    programs: Path, tmp_path: Path
) -> None:
    environment = ("env", f"PATH={programs}:/usr/bin:/bin")
    out = run(*environment, "moorage", "new-plugin", "OfMyOwn", folder=tmp_path)
    (command,) = re.findall(r"^Test it: (.*)$", out, re.M)
    assert "pip install pytest && " in command
    assert "3 passed" in run(*environment, "sh", "-c", command, folder=tmp_path)


@pytest.mark.timeout(600)
def test_every_command_of_a_new_project_works(programs: Path, tmp_path: Path) -> None:
    run(programs / "moorage", "new-plugin", "OfMyOwn", "--package", folder=tmp_path)
    project = tmp_path / "of-my-own"
    page = (project / "README.md").read_text()
    commands = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)
        for line in block.splitlines()
    ]
    assert len(commands) >= 4
    for command in commands:
        run("env", f"PATH={programs}:/usr/bin:/bin", "sh", "-c", command, folder=project)
