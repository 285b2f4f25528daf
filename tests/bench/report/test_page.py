"""A run's tables and plots in the documentation."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench import budgets
from bench.parts import CLIFFS, CLUSTER, EDGE, PARTS
from bench.report import files, page, tables
from bench.results import Results
from tests.bench import results as made


def begin(part: str) -> str:
    return f"<!-- bench: {part} -->"


def end(part: str) -> str:
    return f"<!-- end of bench: {part} -->"


def sections(*parts: str) -> str:
    return "Before.\n\n" + "".join(f"{begin(part)}\nold {part}\n{end(part)}\n" for part in parts)


@dataclass(frozen=True, slots=True)
class Pages:
    """A page and a README with sections, and the file of a run."""

    page: Path
    readme: Path
    run: Path

    def write(self, results: Results) -> list[str]:
        results.verdicts = list(budgets.verdicts(results))
        files.write(results, self.run)
        return page.main(self.run, self.page, self.readme)


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    found = Pages(tmp_path / "performance.md", tmp_path / "README.md", tmp_path / "latest.json")
    found.page.write_text(sections(*PARTS) + "After.\n")
    found.readme.write_text(sections(EDGE, CLUSTER))
    return found


def test_the_page_gets_the_tables_and_plots_of_the_run_and_keeps_the_rest(pages: Pages) -> None:
    results = made.results()
    results.notes = ["something was left out"]
    of_another_run = pages.page.with_suffix("") / "old.svg"
    of_another_run.parent.mkdir()
    of_another_run.touch()

    assert pages.write(results) == [*PARTS]

    text = pages.page.read_text()
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
    assert "old" not in text
    assert text.count("2026-11-21 12:00 UTC, 2 cores (a processor)") == len(PARTS)
    assert "something was left out" in text
    assert "| moorage 3+3, numbered pods | 1.00 / 2.00 |" in text
    assert [
        f"#### {table.title}" for part in PARTS for table in tables.of_part(results, part)
    ] == re.findall("^#### .*", text, re.M)
    plots = {pages.page.parent / place for place in re.findall(r"^!\[.+\]\((.+)\)$", text, re.M)}
    assert plots == {*of_another_run.parent.iterdir()}
    assert of_another_run not in plots


def test_each_section_ends_with_the_budgets_of_its_part(pages: Pages) -> None:
    pages.write(made.results())
    text = pages.page.read_text()
    edge = text.partition(begin(EDGE))[2].partition(end(EDGE))[0]
    cliffs = text.partition(begin(CLIFFS))[2].partition(end(CLIFFS))[0]
    assert "numbered pods | at most 0.6 x | 0.60 x | kept |" in edge
    assert "a scorer joins" not in edge
    assert "more than at rest | at most 20 ms | 20.00 ms | kept |" in cliffs


def test_parts_that_were_not_measured_keep_their_sections_and_plots(pages: Pages) -> None:
    pages.write(made.results())
    before, readme = pages.page.read_text(), pages.readme.read_text()
    plots = {*pages.page.with_suffix("").iterdir()}
    partial = made.results()
    partial.edge, partial.growth, partial.cliffs, partial.replicas = [], [], None, []
    partial.records = []
    partial.machine = replace(partial.machine, date="later")

    assert pages.write(partial) == [CLUSTER, "full-sample"]

    text = pages.page.read_text()
    assert text.count("later, 2 cores") == 2
    assert before.partition(begin(CLUSTER))[0] == text.partition(begin(CLUSTER))[0]
    assert (
        pages.readme.read_text().partition(begin(CLUSTER))[0] == readme.partition(begin(CLUSTER))[0]
    )
    assert {*pages.page.with_suffix("").iterdir()} == plots


def test_the_readme_gets_both_short_tables(pages: Pages) -> None:
    pages.write(made.results())
    text = pages.readme.read_text()
    assert "old" not in text
    for row in (
        "| 5,000 names, pods of a StatefulSet | 0.60 |",
        "| 5,000 names, pods unlike any before | 0.80 |",
        "| 500 names, a profile without plugins | 0.10 |",
        "| no extender | 100 (1.00) | 100 (1.00) |",
        "| Moorage, with `bindVerb` | 90 (0.90), 1.5 ms | 90 (0.90), 1.5 ms |",
    ):
        assert row in text


def test_a_page_without_a_section_is_named(pages: Pages) -> None:
    pages.page.write_text(sections(EDGE))
    with pytest.raises(page.PageError, match=r"performance\.md: no section for the part cluster"):
        pages.write(made.results())


def test_a_quick_run_is_refused(pages: Pages) -> None:
    results, before = made.results(), pages.page.read_text()
    results.quick = True
    with pytest.raises(page.PageError, match="measure without --quick"):
        pages.write(results)
    assert pages.page.read_text() == before


def test_the_pages_have_the_sections() -> None:
    text, readme = page.PAGE.read_text(), page.README.read_text()
    for part in PARTS:
        assert text.index(begin(part)) < text.index(end(part))
    for part in (EDGE, CLUSTER):
        assert readme.index(begin(part)) < readme.index(end(part))
