"""Type checkers find nothing in the plugins of the documentation: neither pyright nor mypy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs.pages import ROOT, blocks

SDK = ROOT / "sdk"

pytestmark = pytest.mark.timeout(300)  # mypy reads numpy for the first time

MISTAKES = """\
from max_temperature import MaxTemperature

limit: str = MaxTemperature().args.limit
MaxTemperature().args.limitt
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All Python of the documentation, as the files that it names, and one with mistakes."""
    folder = tmp_path_factory.mktemp("plugins")
    for block in blocks("python"):
        name = block.text.partition("\n")[0].removeprefix("# ")
        (folder / name).write_text(block.text)
    (folder / "mistakes.py").write_text(MISTAKES)
    return folder


def check(folder: Path, command: str, *options: str) -> str:
    """Run a type checker in the folder; return what it writes."""
    program = str(Path(sys.executable).parent / command)
    environment = {**os.environ, "MYPYPATH": str(SDK)}
    run = subprocess.run(
        [program, *options, "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=280,
    )
    return run.stdout


def test_pyright_checks_plugins_as_an_editor_does(folder: Path) -> None:
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(SDK)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    python = f"--pythonpath={sys.executable}"
    found = json.loads(check(folder, "basedpyright", "--outputjson", python))
    problems = [
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in found["generalDiagnostics"]
    ]
    assert found["summary"]["filesAnalyzed"] > 10
    assert [problem for problem in problems if problem[0] != "mistakes.py"] == []
    assert {line for _, line, _ in problems} == {3, 4}


def test_mypy_checks_plugins_strictly(folder: Path) -> None:
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'docs'}"
    *lines, _ = check(folder, "mypy", "--strict", cache).splitlines()
    places = [line.partition(": error: ")[0] for line in lines]
    assert places == ["mistakes.py:3", "mistakes.py:4"]
