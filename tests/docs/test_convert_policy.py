"""What the page about old Policies shows is what `moorage convert-policy` says and writes."""

from pathlib import Path

import pytest

from cli.legacy.convert import Conversion, convert
from tools.docs.pages import DOCS, ROOT, blocks

PAGE = DOCS / "how-to" / "convert-policy.md"
POLICY = ROOT / "tests" / "data" / "legacy-policy.json"


def shown(language: str, begin: str = "") -> str:
    (block,) = (b for b in blocks(language) if b.page == PAGE and b.text.startswith(begin))
    return block.text


@pytest.fixture
def conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Conversion:
    monkeypatch.chdir(tmp_path)
    file = Path("legacy-policy.json")
    file.write_text(POLICY.read_text())
    return convert(file, "default-scheduler")


def test_the_lines_that_are_shown_are_said(conversion: Conversion) -> None:
    lines = shown("text").splitlines()
    assert lines
    assert [line for line in lines if line not in conversion.notes] == []
