"""The commands that `moorage new-plugin` prints work where it ran, as they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.skeleton.next_steps import to_test
from cli.skeleton.writing import write_skeleton
from tests.cli.support import MOORAGE, ROOT

BIN = Path(sys.executable).parent
ELSEWHERE = "/usr/bin:/bin"


def shell(command: str, folder: Path, path: str) -> str:
    # The plugin for pytest-asyncio warns when it finds no configuration.
    environ = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": "-p no:asyncio -p no:cacheprovider"}
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed(out: str, label: str) -> str:
    (line,) = (line for line in out.splitlines() if line.startswith(label))
    return line.removeprefix(label).strip()


@pytest.mark.parametrize("directory", ["", "plugins/with space"])
@pytest.mark.parametrize("path", [f"{BIN}:{ELSEWHERE}", ELSEWHERE])
def test_the_test_runs_by_the_printed_command(tmp_path: Path, directory: str, path: str) -> None:
    out = shell(f"{MOORAGE} new-plugin OfMyOwn '{directory or '.'}'", tmp_path, path)
    command = printed(out, "Test it:")
    assert "3 passed" in shell(command, tmp_path, path)
    interpreter = "python -m pytest" if str(BIN) in path else f"{BIN}/python -m pytest"
    assert interpreter in command.replace("python3", "python")


@pytest.mark.parametrize("path", [f"{BIN}:{ELSEWHERE}", ELSEWHERE])
def test_the_plugin_runs_by_the_printed_command(tmp_path: Path, path: str) -> None:
    out = shell(f"{MOORAGE} new-plugin OfMyOwn plugins", tmp_path, path)
    command = printed(out, "Run it:")
    assert (
        command
        == f"{'' if str(BIN) in path else f'{BIN}/'}moorage up --plugin plugins/of_my_own.py"
    )
    done = shell(f"{command} --once --nodes=1 --pods=1", tmp_path, path)
    assert "1 of 1 pods bound" in done


@pytest.mark.parametrize(
    ("installed", "first"),
    [
        ({"pytest", "pip"}, ""),
        ({"pip"}, "PYTHON -m pip install pytest && "),
        (set(), "uv pip install --python PYTHON pytest && "),
    ],
)
def test_pytest_is_installed_first_where_it_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: set[str], first: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ELSEWHERE)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))  # no checkout
    skeleton = write_skeleton("OfMyOwn", "filter", "node", None, package=False, taken=())
    command = to_test(skeleton, package=False, installed=installed.__contains__)
    expected = f"{first}PYTHON -m pytest test_of_my_own.py".replace("PYTHON", sys.executable)
    assert command == expected


def test_in_a_checkout_the_development_tools_are_installed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(ROOT / ".venv"))
    skeleton = write_skeleton("OfMyOwn", "filter", "node", tmp_path, package=False, taken=())
    command = to_test(skeleton, package=False, installed={"pip"}.__contains__)
    assert f"make -C {ROOT} .venv/.dev && " in command


def test_a_project_is_installed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{BIN}:{ELSEWHERE}")
    skeleton = write_skeleton("OfMyOwn", "score", "batch", None, package=True, taken=())
    command = to_test(skeleton, package=True).replace("python3", "python")
    assert command == ("(cd of-my-own && python -m pip install -e '.[dev]' && python -m pytest)")
