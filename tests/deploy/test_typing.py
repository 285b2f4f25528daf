"""Type checkers understand the installed wheel as `typing_tests` has it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.wheel import ROOT, build_wheel, environment_with

CASES = ROOT / "typing_tests"

SETTINGS = {
    "typeCheckingMode": "strict",
    "enableTypeIgnoreComments": False,  # those are mypy's
    "reportUnnecessaryTypeIgnoreComment": "error",
}

pytestmark = pytest.mark.timeout(300)  # mypy reads numpy for the first time


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheel, and nothing of the repository."""
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    return environment_with(wheel, tmp_path_factory.mktemp("environment")) / "python"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(CASES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    return tmp_path


def checked(folder: Path, program: str, *options: str) -> str:
    """Run a type checker in a folder, and return what it writes."""
    command = [str(Path(sys.executable).parent / program), *options]
    environment = {k: v for k, v in os.environ.items() if k not in ("MYPYPATH", "PYTHONPATH")}
    environment["PYRIGHT_PYTHON_IGNORE_WARNINGS"] = "1"
    run = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    return run.stdout


def mypy(folder: Path, python: Path) -> list[str]:
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'typing_tests'}"
    options = ("--strict", "--config-file=", cache, f"--python-executable={python}", ".")
    return checked(folder, "mypy", *options).splitlines()


def pyright(folder: Path, python: Path, *options: str) -> Any:
    return json.loads(
        checked(folder, "pyright", "--outputjson", f"--pythonpath={python}", *options)
    )


def test_mypy_finds_the_marked_mistakes_alone(folder: Path, python: Path) -> None:
    count = len(list(CASES.glob("*.py")))
    assert mypy(folder, python) == [f"Success: no issues found in {count} source files"]


def test_pyright_finds_the_marked_mistakes_alone(folder: Path, python: Path) -> None:
    found = pyright(folder, python)
    assert found["summary"]["filesAnalyzed"] == len(list(CASES.glob("*.py")))
    assert [each["message"] for each in found["generalDiagnostics"]] == []


def test_a_marked_line_without_a_mistake_is_found(folder: Path, python: Path) -> None:
    (folder / "mistakes.py").write_text(
        "from moorage.testing import make_pod\n\n"
        "make_pod()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]\n"
    )
    *lines, _ = mypy(folder, python)
    assert [line.partition(" error: ")[2] for line in lines] == [
        'Unused "type: ignore" comment  [unused-ignore]'
    ]
    (problem,) = pyright(folder, python)["generalDiagnostics"]
    assert problem["rule"] == "reportUnnecessaryTypeIgnoreComment"
