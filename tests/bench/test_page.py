"""A run's tables in the documentation."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench import report
from bench.cluster import SERIES
from bench.report import CLUSTER, COST, EDGE, GROWTH, PARTS, Results
from tests.bench import results as made


def begin(part: str) -> str:
    return f"<!-- bench: {part} -->"


def end(part: str) -> str:
    return f"<!-- end of bench: {part} -->"


def sections(*parts: str) -> str:
    return "Before.\n\n" + "".join(f"{begin(part)}\nold {part}\n{end(part)}\n" for part in parts)


@dataclass(frozen=True, slots=True)
class Pages:
    """A page with sections, and the file of a run."""

    page: Path
    run: Path

    def write(self, results: Results) -> list[str]:
        report.write(results, self.run)
        return report.publish(self.run, self.page)


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    found = Pages(tmp_path / "benchmarks.md", tmp_path / "latest.json")
    found.page.write_text(sections(*PARTS) + "After.\n")
    return found


def test_the_page_gets_the_tables_of_the_run_and_keeps_the_rest(pages: Pages) -> None:
    results = made.results()
    results.notes = ["something was left out"]
    assert pages.write(results) == [*PARTS]

    text = pages.page.read_text()
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
    assert "old" not in text
    assert text.count("2026-11-21 12:00 UTC, 2 cores (a processor)") == len(PARTS)
    assert "something was left out" in text
    assert "| moorage 3+3, numbered pods | 0.50 / 1.00 | 0.50 | 1.50 |" in text
    assert [
        f"#### {table.title}"
        for part in PARTS
        for table in results.of_part(part)
        if table.published
    ] == re.findall("^#### .*", text, re.M)


def test_each_section_ends_with_the_budgets_of_its_part(pages: Pages) -> None:
    pages.write(made.results())
    text = pages.page.read_text()
    edge = text.partition(begin(EDGE))[2].partition(end(EDGE))[0]
    growth = text.partition(begin(GROWTH))[2].partition(end(GROWTH))[0]
    assert "numbered pods | at most 0.5 x | 0.50 x | kept |" in edge
    assert "memory" not in edge
    assert "150,000 pods | at most 350 MB | 346.03 MB | kept |" in growth


def test_parts_that_were_not_measured_keep_their_sections(pages: Pages) -> None:
    pages.write(made.results())
    before = pages.page.read_text()
    partial = made.empty()
    made.add_cluster(partial, SERIES[0])
    partial.machine = replace(partial.machine, date="later")

    assert pages.write(partial) == [CLUSTER]

    text = pages.page.read_text()
    assert text.count("later, 2 cores") == 1
    assert before.partition(begin(CLUSTER))[0] == text.partition(begin(CLUSTER))[0]


def test_a_page_without_a_section_is_named(pages: Pages) -> None:
    pages.page.write_text(sections(COST, EDGE))
    with pytest.raises(report.PageError, match=r"benchmarks\.md: no section for the part cluster"):
        pages.write(made.results())


def test_a_quick_run_is_refused(pages: Pages) -> None:
    results, before = made.results(), pages.page.read_text()
    results.quick = True
    with pytest.raises(report.PageError, match="measure without --quick"):
        pages.write(results)
    assert pages.page.read_text() == before


def test_the_pages_have_the_sections() -> None:
    text = report.PAGE.read_text()
    for part in PARTS:
        assert text.index(begin(part)) < text.index(end(part))
