"""What `moorage new-plugin` writes passes linters, type checkers and its own tests as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.skeleton.test_new_plugin import FORMS, LONG
from tests.cli.support import MOORAGE
from tests.cli.support import invoked as moorage
from tests.cli.up.test_packages import pip_install

BIN = Path(sys.executable).parent
pytestmark = pytest.mark.timeout(300)  # mypy and pip compute for as long as a machine is busy

CHECKED = "E,F,I,B,UP,D,N,SIM,RET,ANN"


def run(folder: Path, *command: object) -> None:
    """Run a command as a user would, without anything of this repository around."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy found out about libraries, which are the same for all."""
    return f"--cache-dir={tmp_path_factory.mktemp('mypy')}"


ALONE = ("-m", "pytest", "-q", "-p", "no:asyncio", "-p", "no:cacheprovider")
"""The plugin for pytest-asyncio warns when it finds no configuration."""

RUFF = ("check", "--ignore=D103,D203,D213", "--select", CHECKED)


def test_skeletons_pass_ruff_and_their_own_tests(tmp_path: Path) -> None:
    for name in ("MaxTemperature", LONG):
        for kind, form in FORMS:
            folder = tmp_path / name / f"{kind}-{form}"
            result = moorage("new-plugin", name, folder, "--kind", kind, "--form", form)
            assert result.exit_code == 0, result.stderr
            run(folder, BIN / "ruff", *RUFF, "--isolated")
    run(tmp_path, BIN / "ruff", "format", "--isolated", "--check")
    run(tmp_path, BIN / "ruff", "format", "--isolated", "--check", "--line-length=100")
    for folder in (tmp_path / "MaxTemperature").iterdir():
        run(folder, sys.executable, *ALONE)


def test_skeletons_are_typed(tmp_path: Path, cache: str) -> None:
    for kind, form in FORMS:
        options = ("--kind", kind, "--form", form)
        assert moorage("new-plugin", f"My-{kind}-{form}", tmp_path, *options).exit_code == 0
    run(tmp_path, sys.executable, "-m", "mypy", "--strict", cache, ".")
    assert len(list(tmp_path.glob("my_*.py"))) == len(FORMS)


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_a_project_passes_its_own_checks_and_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: str, kind: str, form: str
) -> None:
    options = ("--kind", kind, "--form", form, "--package")
    assert moorage("new-plugin", "OfMyOwn", tmp_path, *options).exit_code == 0
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()} == {
        "README.md",
        "policy.yaml",
        "pyproject.toml",
        "src/of_my_own/__init__.py",
        "src/of_my_own/py.typed",
        "tests/test_of_my_own.py",
    }
    run(tmp_path, sys.executable, *ALONE)
    run(tmp_path, BIN / "ruff", *RUFF)
    run(tmp_path, BIN / "ruff", "format", "--check")
    if form == "node":  # this takes seconds, and the other form is checked above
        run(tmp_path, sys.executable, "-m", "mypy", cache)
        pip_install(tmp_path, tmp_path / "target")
        assert (tmp_path / "target" / "of_my_own" / "py.typed").exists()
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "target"))
        command = [str(MOORAGE), "config", "show", "policy.yaml"]
        shown = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=280)
        (profile,) = yaml.safe_load(shown.stdout)["profiles"]
        points = {point for point, each in profile["plugins"].items() if "OfMyOwn" in str(each)}
        assert points == {kind}


def shell(command: str, folder: Path) -> str:
    # The environment's programs are not in PATH. pytest-asyncio warns without a configuration.
    options = "-p no:asyncio -p no:cacheprovider"
    environ = {**os.environ, "PATH": "/usr/bin:/bin", "PYTEST_ADDOPTS": options}
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environ, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed(out: str, label: str) -> str:
    (line,) = (line for line in out.splitlines() if line.startswith(label))
    return line.removeprefix(label).strip()


def test_the_printed_commands_test_and_run_the_plugin(tmp_path: Path) -> None:
    out = shell(f"{MOORAGE} new-plugin OfMyOwn 'plugins/with space'", tmp_path)
    assert "3 passed" in shell(printed(out, "Test it:"), tmp_path)
    done = shell(f"{printed(out, 'Run it:')} --once --nodes=1 --pods=1", tmp_path)
    assert "1 of 1 pods bound" in done


def test_a_project_is_installed_before_it_is_tested(tmp_path: Path) -> None:
    out = shell(f"{MOORAGE} new-plugin OfMyOwn --package", tmp_path)
    python = f"{BIN}/{Path(sys.executable).name}"
    install = f"{python} -m pip install -e '.[dev]'"
    assert printed(out, "Test it:") == f"(cd of-my-own && {install} && {python} -m pytest)"
    assert printed(out, "Run it:") == f"(cd of-my-own && {BIN}/moorage up --config policy.yaml)"
