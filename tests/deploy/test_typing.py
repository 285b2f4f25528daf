"""Type checkers understand the installed wheel as `typing_tests` has it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.wheel import ROOT

CASES = ROOT / "typing_tests"

SETTINGS = {
    "typeCheckingMode": "strict",
    "enableTypeIgnoreComments": False,  # those are mypy's
    "reportUnnecessaryTypeIgnoreComment": "error",
}

pytestmark = pytest.mark.timeout(300)  # mypy reads numpy for the first time


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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All cases, and a line that is marked without a mistake, which has to be found."""
    shutil.copytree(CASES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "marked.py").write_text(
        "from moorage.testing import make_pod\n\n"
        "make_pod()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]\n"
    )
    return tmp_path


def test_mypy_finds_the_marked_mistakes_alone(folder: Path, programs: Path) -> None:
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'typing_tests'}"
    interpreter = f"--python-executable={programs / 'python'}"
    found = checked(folder, "mypy", "--strict", "--config-file=", cache, interpreter, ".")
    count = len(list(CASES.glob("*.py"))) + 1
    assert found.splitlines() == [
        'marked.py:3: error: Unused "type: ignore" comment  [unused-ignore]',
        f"Found 1 error in 1 file (checked {count} source files)",
    ]


def test_pyright_finds_the_marked_mistakes_alone(folder: Path, programs: Path) -> None:
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    options = ("--outputjson", f"--pythonpath={programs / 'python'}")
    found = json.loads(checked(folder, "pyright", *options))
    assert found["summary"]["filesAnalyzed"] == len(list(CASES.glob("*.py"))) + 1
    (problem,) = found["generalDiagnostics"]
    assert Path(problem["file"]).name == "marked.py"
    assert problem["rule"] == "reportUnnecessaryTypeIgnoreComment"
