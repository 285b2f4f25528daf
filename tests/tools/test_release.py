"""What a release is, what it breaks and what it says."""

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.version import Version

from tools.release.notes import ReleaseError, notes_of, version_of
from tools.release.public_api import PUBLIC, allows_breaks, breaks
from tools.release.released import ROOT, NoReleaseError, last_release

ENGINE = "def pick(pods, count=1):\n    return pods[:count]\n\n\ndef inner(x):\n    return x\n"


def package(folder: Path, engine: str, exports: str = '["pick"]') -> Path:
    for suffix in PUBLIC:
        module = folder / f"moorage{suffix}".replace(".", "/")
        module.mkdir(parents=True)
        (module / "__init__.py").write_text("__all__ = []\n")
    (folder / "moorage/engine.py").write_text(engine)
    (folder / "moorage/__init__.py").write_text(
        f"from moorage.engine import pick\n\n__all__ = {exports}\n"
    )
    return folder


@pytest.mark.parametrize(
    ("engine", "found"),
    [
        (ENGINE, []),
        (ENGINE.replace("count=1", "count=1, strict=False"), []),
        (ENGINE.replace("def inner(x)", "def inner(y, z)"), []),  # not exported
        (ENGINE.replace("pods, count=1", "pods, count"), ["Parameter is now required"]),
        (ENGINE.replace("pods, count=1", "pods"), ["Parameter was removed"]),
    ],
    ids=["same", "new-optional-parameter", "private", "now-required", "removed"],
)
def test_breaks_of_exported_names_are_found(engine: str, found: list[str], tmp_path: Path) -> None:
    old = package(tmp_path / "old", ENGINE)
    lines = list(breaks(old, package(tmp_path / "new", engine)))
    assert [line.rpartition(": ")[2] for line in lines] == found


def test_a_name_that_is_no_longer_there_is_a_break(tmp_path: Path) -> None:
    old = package(tmp_path / "old", ENGINE)
    new = package(tmp_path / "new", "def other():\n    pass\n")
    (new / "moorage/__init__.py").write_text("__all__ = []\n")
    assert any("pick: Public object was removed" in line for line in breaks(old, new))


def test_a_name_that_is_no_longer_exported_is_a_break(tmp_path: Path) -> None:
    old = package(tmp_path / "old", ENGINE)
    (line,) = breaks(old, package(tmp_path / "new", ENGINE, exports="[]"))
    assert line == "moorage.__all__: pick: Public object is no longer exported"


@pytest.mark.parametrize(
    ("last", "version", "allowed"),
    [
        ("0.1.0", "0.1.1", False),
        ("0.1.0", "0.2.0", True),
        ("0.9.3", "1.0.0", True),
        ("1.0.0", "1.9.0", False),
        ("1.9.0", "2.0.0", True),
    ],
)
def test_versions_that_allow_breaks(last: str, version: str, allowed: bool) -> None:
    assert allows_breaks(Version(last), Version(version)) is allowed


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


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "deploy").mkdir()
    first = commit(tmp_path, "0.1.0")
    (tmp_path / "deploy/last-release").write_text(f"{first}\n")
    commit(tmp_path, "0.2.0")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "tag.gpgSign=false")
    command = ["git", *identity, "-c", "commit.gpgSign=false", "-C", str(folder), *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


def commit(folder: Path, version: str) -> str:
    (folder / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", version)
    return git(folder, "rev-parse", "HEAD")


def test_without_a_tag_a_file_names_the_commit(repository: Path, tmp_path: Path) -> None:
    release = last_release(repository)
    assert (release.version, release.place) == ("0.1.0", "deploy/last-release")
    tree = release.extract(tmp_path / "tree", "pyproject.toml")
    assert [path.name for path in tree.iterdir()] == ["pyproject.toml"]
    assert "0.1.0" in (tree / "pyproject.toml").read_text()


def test_the_newest_final_tag_before_head_is_the_last_release(repository: Path) -> None:
    git(repository, "tag", "v0.9.0")
    for version in ("0.10.0", "0.11.0rc1", "0.11.0"):
        commit(repository, version)
        git(repository, "tag", f"v{version}")
    git(repository, "tag", "vague")
    release = last_release(repository)
    assert (release.version, release.place) == ("0.10.0", "v0.10.0")


def test_a_shallow_clone_gets_the_next_step(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    (tmp_path / "shallow/deploy/last-release").write_bytes(
        (repository / "deploy/last-release").read_bytes()
    )
    with pytest.raises(NoReleaseError, match=r"git fetch --unshallow --tags"):
        last_release(tmp_path / "shallow")
