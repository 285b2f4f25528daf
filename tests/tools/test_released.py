"""The last release is the newest final tag before HEAD, else the commit that a file names."""

import subprocess
from pathlib import Path

import pytest

from tools.release.released import NoReleaseError, last_release


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
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


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
