"""A run's tables and plots in the documentation."""

import re
from pathlib import Path

from bench import markdown, report
from tests.bench import results as made


def test_the_page_gets_the_tables_and_plots_of_the_run_and_keeps_the_rest(tmp_path: Path) -> None:
    results, page = made.results(), tmp_path / "performance.md"
    results.notes = ["something was left out"]
    report.write(results, tmp_path / "latest.json")
    page.write_text(f"Before.\n\n{markdown.BEGIN}\nold\n{markdown.END}\n\nAfter.\n")
    of_another_run = tmp_path / "performance" / "old.svg"
    of_another_run.parent.mkdir()
    of_another_run.touch()

    markdown.main(tmp_path / "latest.json", page)

    text = page.read_text()
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
    assert "old" not in text
    assert "2026-11-21 12:00 UTC, 2 cores (a processor)" in text
    assert "something was left out" in text
    assert "| moorage 3+3, numbered pods | 1.00 / 2.00 |" in text
    assert [f"### {table.title}" for table in report.tables(results)] == re.findall(
        "^### .*", text, re.M
    )
    plots = {tmp_path / place for place in re.findall(r"^!\[.+\]\((.+)\)$", text, re.M)}
    assert plots == {*of_another_run.parent.iterdir()}
    assert of_another_run not in plots
