"""Pages begin alike, and a folder has no more of them than a reader can survey."""

import pytest

from tools.docs.pages import DOCS

MOST = 14
"""Pages in a folder, other than the ADRs, which are in the order of time."""


def test_a_page_begins_with_what_it_is_for(subtests: pytest.Subtests) -> None:
    for page in sorted(DOCS.rglob("*.md")):
        with subtests.test(str(page)):
            title, first, *_ = page.read_text().split("\n\n")
            assert title.startswith("# ")
            assert "\n" not in title
            assert first[0].isalnum() or first[0] in "`*[", (
                "begin with a sentence: what is the page for?"
            )


def test_folders_can_be_surveyed() -> None:
    folders = {page.parent for page in DOCS.rglob("*.md")} - {DOCS / "adr"}
    assert {f: n for f in folders if (n := len(list(f.glob("*.md")))) > MOST} == {}
