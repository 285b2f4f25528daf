"""The commands that `moorage new-plugin` prints work where it ran, as they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import MOORAGE

BIN = Path(sys.executable).parent


def shell(command: str, folder: Path) -> str:
    # The environment's programs are not in PATH. pytest-asyncio warns without a configuration.
    options = "-p no:asyncio -p no:cacheprovider"
    environ = {**os.environ, "PATH": "/usr/bin:/bin", "PYTEST_ADDOPTS": options}
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed(out: str, label: str) -> str:
    (line,) = (line for line in out.splitlines() if line.startswith(label))
    return line.removeprefix(label).strip()


@pytest.mark.parametrize("directory", [".", "plugins/with space"])
def test_the_printed_commands_test_and_run_the_plugin(tmp_path: Path, directory: str) -> None:
    out = shell(f"{MOORAGE} new-plugin OfMyOwn '{directory}'", tmp_path)
    assert "3 passed" in shell(printed(out, "Test it:"), tmp_path)
    done = shell(f"{printed(out, 'Run it:')} --once --nodes=1 --pods=1", tmp_path)
    assert "1 of 1 pods bound" in done


def test_a_project_is_installed_before_it_is_tested(tmp_path: Path) -> None:
    out = shell(f"{MOORAGE} new-plugin OfMyOwn --package", tmp_path)
    python = f"{BIN}/{Path(sys.executable).name}"
    install = f"{python} -m pip install -e '.[dev]'"
    assert printed(out, "Test it:") == f"(cd of-my-own && {install} && {python} -m pytest)"
    assert printed(out, "Run it:") == f"(cd of-my-own && {BIN}/moorage up --config policy.yaml)"
