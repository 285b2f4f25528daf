"""Links within the repository lead somewhere, and every page can be found."""

import re
from urllib.parse import urlsplit

import pytest

from tools.docs.pages import DOCS, anchors, images, links, pages


def test_links_lead_somewhere(subtests: pytest.Subtests) -> None:
    for page in pages():
        with subtests.test(str(page)):
            for link in links(page):
                if "://" in link:
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                assert target.exists(), f"{link}: there is no {path}"
                if anchor:
                    assert anchor in anchors(target), f"{link}: {target.name} has no such heading"


def test_images_exist(subtests: pytest.Subtests) -> None:
    for page in pages():
        with subtests.test(str(page)):
            assert [image for image in images(page) if not (page.parent / image).is_file()] == []


def test_external_links_are_https_urls(subtests: pytest.Subtests) -> None:
    """Whether they answer is for `make docs-linkcheck`, which needs the network."""
    for page in pages():
        with subtests.test(str(page)):
            for link in links(page):
                if "://" in link:
                    parts = urlsplit(link)
                    assert parts.scheme == "https", link
                    assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), link


def test_every_page_is_in_the_index() -> None:
    indices = [*DOCS.rglob("index.md")]
    linked = {
        (index.parent / link.partition("#")[0]).resolve()
        for index in indices
        for link in links(index)
    }
    assert set(DOCS.rglob("*.md")) - linked == {DOCS / "index.md"}
