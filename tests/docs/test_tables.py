"""Names, pages, links, generated tables and included files: all are there, current and alike."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import click
import pytest

from cli.main import main
from tools.docs.api_tables import MODULES, public_names
from tools.docs.generate import current
from tools.docs.pages import DOCS, ROOT, anchors, images, links, pages
from tools.docs.plugin_tables import PLUGINS
from tools.docs.tables import SETTINGS

SOURCES = [
    file
    for folder in ("gateway", "services", "sandbox", "sdk", "cli")
    for file in (ROOT / folder).rglob("*.py")
]


def shown(page: str, table: str) -> set[str]:
    text = (DOCS / page).read_text()
    return set(re.findall(rf"<!-- table: {table} (.+?) -->", text))


def commands(group: click.Group, prefix: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name


def test_a_page_is_current(subtests: pytest.Subtests) -> None:
    for page in pages():
        with subtests.test(str(page)):
            assert page.read_text() == current(page), (
                "run `.venv/bin/python -m tools.docs.generate`"
            )


def test_every_kind_of_settings_is_shown() -> None:
    assert shown("reference/settings.md", "settings") == set(SETTINGS)


def test_the_settings_of_every_process_are_shown() -> None:
    used = {
        match
        for file in SOURCES
        for match in re.findall(r"parse_settings\((\w+), ", file.read_text())
        if match[0].isupper() and file.name != "settings.py"
    }
    defined = {cls.__name__ for cls, _ in SETTINGS.values()}
    assert used
    assert used <= defined


def test_every_metric_is_shown() -> None:
    page = (DOCS / "reference" / "metrics.md").read_text()
    in_source = {
        match
        for file in SOURCES
        if "prometheus_client" in file.read_text()
        for match in re.findall(r'"((?:moorage|grpc_server)_[a-z_]+)"', file.read_text())
    }
    assert in_source
    missing = {
        name for name in in_source if not re.search(rf"^\| `{name}(_total)?` \|", page, re.M)
    }
    assert not missing


def test_the_plugins_of_every_service_are_shown() -> None:
    assert shown("reference/plugins.md", "plugins") == set(PLUGINS)


def test_every_proto_is_named() -> None:
    page = (DOCS / "reference" / "protos.md").read_text()
    assert all(f"[{file.name}](" in page for file in (ROOT / "protos").rglob("*.proto"))


def test_every_command_is_shown() -> None:
    assert shown("reference/cli.md", "command") == set(commands(main))


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


def test_every_public_module_has_a_page() -> None:
    folder = DOCS / "reference" / "api"
    pages = [file.read_text() for file in folder.glob("*.md")]
    shown = [name for page in pages for name in re.findall(r"<!-- table: api (\S+) -->", page)]
    assert sorted(shown) == sorted(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(module: str) -> None:
    assert public_names(module)
    assert [each.name for each in public_names(module) if not each.text.strip()] == []
