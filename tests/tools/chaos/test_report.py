"""What a campaign comes to is put on the page and into README by one command."""

from pathlib import Path

import pytest

from tools.chaos import report

MARKS = """before
<!-- campaign -->
old
<!-- end -->
<!-- campaign: embedded -->
old
<!-- end -->
<!-- campaign: real -->
old
<!-- end -->
after
"""


def row(fault: str, *, lost: int = 0, pause: float = 1.0, accepted: str = "zeros") -> list[str]:
    numbers = ["1", "50", str(lost), "0", "0", "0", "0", "1.00", "0", f"{pause}", "0.1"]
    return [fault, *numbers, accepted]


def test_both_tables_and_the_sentence_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, readme, result = (tmp_path / name for name in ("page.md", "README.md", "result.json"))
    page.write_text(MARKS)
    readme.write_text(MARKS)
    monkeypatch.setattr(report, "PAGE", page)
    monkeypatch.setattr(report, "BEGINNINGS", {page: "The campaign", readme: "It"})
    tables = {
        "real": [row("no fault"), row("kill", lost=2, pause=12.0, accepted="zeros, **missed**")],
        "embedded": [row("no fault", pause=9.0), row("kill"), row("stop", pause=3.0)],
    }
    for plane, cells in tables.items():
        report.save(result, cells, plane, f"Seed 1 on {plane}.")
        report.publish(result)
    said = (
        "2 kinds of faults (1 on a real control plane) while pods arrive: 2 pods lost, 0 bound "
        "twice, 0 rules broken; the longest pause without a bind was 9.0 s (12.0 s on the real "
        "one). Rows that missed what is accepted for them: 1."
    )
    assert f"<!-- campaign -->\nIt injects {said}\n<!-- end -->" in readme.read_text()
    text = page.read_text()
    assert f"<!-- campaign -->\nThe campaign injects {said}\n<!-- end -->" in text
    assert "Seed 1 on embedded." in text
    assert "2 rounds, 100 pods. 0 in every row: twice, " in text
    assert "| kill | 2 |" in text
    assert "old\n<!-- end -->\n<!-- campaign: " not in text
    assert text.startswith("before")
    assert text.endswith("after\n")
