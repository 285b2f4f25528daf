"""Generated tables and included files are current, and show everything that there is."""

import re
from collections.abc import Iterator

import click
import pytest

from cli.main import main
from tools.docs.generate import current
from tools.docs.pages import DOCS, ROOT, pages
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
