"""A tag releases the version of pyproject.toml, with the changelog's section as notes."""

from pathlib import Path

import pytest

from tests.release_notes import ReleaseError, notes_of, version_of

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
