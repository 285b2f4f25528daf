"""A tag releases the version of pyproject.toml, with the changelog's section as notes."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.version import Version

from tools.release.notes import ReleaseError, notes_of, version_of
from tools.release.released import ROOT

CHANGELOG = """\
# Changelog

## Unreleased

### Added

- Later.

## 0.3.0 - 2026-12-01

### Added

- **This**, see ## 5.

## 0.2.0 - 2026-11-23

### Fixed

- That.
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.3.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def test_the_tag_is_the_version(root: Path) -> None:
    assert version_of("v0.3.0", root) == "0.3.0"
    with pytest.raises(ReleaseError, match=r"the tag is v0\.4\.0, pyproject\.toml has 0\.3\.0"):
        version_of("v0.4.0", root)


def test_the_notes_are_the_section_of_the_version(root: Path) -> None:
    assert notes_of("0.3.0", root) == "### Added\n\n- **This**, see ## 5.\n"
    assert notes_of("0.2.0", root) == "### Fixed\n\n- That.\n"


@pytest.mark.parametrize("version", ["0.4.0", "Unreleased", "0.3"])
def test_without_a_section_there_is_no_release(version: str, root: Path) -> None:
    with pytest.raises(ReleaseError, match="rename its section Unreleased"):
        notes_of(version, root)


def test_the_changelog_has_versions_from_new_to_old_and_known_sections() -> None:
    headings = re.findall(r"^(##+) (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    versions = [title for level, title in headings if level == "##"]
    assert versions.pop(0) == "Unreleased"
    assert [v for v in versions if not re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", v)] == []
    released = [Version(title.partition(" ")[0]) for title in versions]
    assert released == sorted(released, reverse=True)
    sections = [title if level == "###" else "" for level, title in headings]
    order = ["", "Changed", "Added", "Deprecated", "Removed", "Fixed", "Security"]
    places = [order.index(section) for section in sections]
    assert all(one < other or not other for one, other in pairwise(places))
