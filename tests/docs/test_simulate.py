"""What the page about `moorage simulate` shows is what it prints, but for how long it took."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from tools.docs.pages import DOCS, ROOT

PAGE = DOCS / "how-to" / "operate" / "simulate.md"
NOTHING = "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\n"
PACE = re.compile(r"in [0-9.]+ s, [0-9]+ a second")


def test_the_example_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    (tmp_path / "now.yaml").write_text(NOTHING)
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    (command,) = re.findall(r"^moorage (simulate .*deploy/demo.*)$", text, re.MULTILINE)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 0, result.output
    assert PACE.sub("", shown) == PACE.sub("", result.stdout)
