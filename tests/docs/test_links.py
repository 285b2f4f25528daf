"""Links within the repository lead somewhere, and every page can be found."""

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, anchors, links, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: there is no {path}"
        if anchor:
            assert anchor in anchors(target), f"{link}: {target.name} has no such heading"


def test_every_page_is_in_the_index() -> None:
    indices = [*DOCS.rglob("index.md")]
    linked = {
        (index.parent / link.partition("#")[0]).resolve()
        for index in indices
        for link in links(index)
    }
    assert set(DOCS.rglob("*.md")) - linked == {DOCS / "index.md"}
