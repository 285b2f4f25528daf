"""Builds the wheel, and runs what was installed from it outside of the repository."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
APPLICATIONS = ("gateway", "services", "sandbox", "cli")
HOME_PAGE = "https://git.example.org/moorage/moorage"
"""What releases of tests name as the repository's page."""


def run(*command: object, folder: Path) -> str:
    """Run a command without anything of this repository around; return what it wrote on stdout."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build_wheel(folder: Path, sources: Path = ROOT) -> Path:
    """Build the repository's wheel, or that of a copy, into a folder, without network."""
    alone = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "wheel", "-q", *alone, "-w", folder, sources, folder=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment_with(wheel: Path, folder: Path) -> Path:
    """Install the wheel alone into a new environment; the dependencies are those of this one.

    What this environment has of the repository is not found there: it comes by `.pth` files, which
    count only in the folder of the environment itself.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index")
    run(*pip, "--no-deps", "--disable-pip-version-check", wheel, folder=folder)
    (site,) = (folder / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin"
