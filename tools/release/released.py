"""The last release, for tests and checks that compare with it: API, protos, version skew.

`python -m tools.release.released FOLDER [PATH ...]` writes its tree, or some paths of it, into a
folder.
"""

import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[2]
FALLBACK = "deploy/last-release"
"""Names the commit that counts as the last release, while no tag does."""


class NoReleaseError(Exception):
    """The last release cannot be read; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release in the repository's history."""

    commit: str
    """The full hash; a tag's where there is one."""

    place: str
    """What names it: the tag, or the file `deploy/last-release`."""

    root: Path = ROOT
    """The repository."""

    @property
    def version(self) -> str:
        """The version in the release's own `pyproject.toml`."""
        data = tomllib.loads(self.read("pyproject.toml").decode())
        return str(data["project"]["version"])

    def read(self, path: str) -> bytes:
        """Return a file of the release."""
        return _git(self.root, "show", f"{self.commit}:{path}")

    def extract(self, folder: Path, *paths: str) -> Path:
        """Write the release's tree, or some paths of it, into a folder, and return the folder."""
        archive = _git(self.root, "archive", "--format=tar", self.commit, *paths)
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        return folder


def last_release(root: Path = ROOT) -> Release:
    """Return the newest final release before HEAD, or the commit in `deploy/last-release`.

    Raises:
        NoReleaseError: The folder is no clone, or the clone has not the commit.
    """
    # A tag on HEAD is the release that is being built: its predecessor is the last one.
    names = _git(root, "tag", "--list", "v*", "--merged", "HEAD", "--no-contains", "HEAD").decode()
    versions = {version: name for name in names.split() if (version := _final(name))}
    if versions:
        place = versions[max(versions)]
        revision = f"{place}^{{commit}}"
    else:
        place = FALLBACK
        revision = f"{(root / FALLBACK).read_text().strip()}^{{commit}}"
    try:
        commit = _git(root, "rev-parse", "--verify", "--quiet", revision).decode().strip()
    except NoReleaseError as error:
        raise NoReleaseError(
            f"{root} has no commit {revision.partition('^')[0]} ({place}), the last release: "
            "if the clone is shallow, run `git fetch --unshallow --tags`"
        ) from error
    return Release(commit=commit, place=place, root=root)


def _final(tag: str) -> Version | None:
    try:
        version = Version(tag)
    except InvalidVersion:
        return None
    return None if version.is_prerelease else version


def _git(root: Path, *arguments: str) -> bytes:
    try:
        run = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True)
    except FileNotFoundError as error:
        raise NoReleaseError("the last release is read with git: install git") from error
    except subprocess.CalledProcessError as error:
        command = " ".join(("git", *arguments))
        detail = error.stderr.decode(errors="replace").strip()
        raise NoReleaseError(f"`{command}` in {root}: {detail or error}") from error
    return run.stdout


def main() -> int:
    """Write the last release's tree, or some paths of it, into the folder that is named first."""
    if len(sys.argv) < 2:
        print("usage: python -m tools.release.released FOLDER [PATH ...]", file=sys.stderr)
        return 2
    folder, *paths = sys.argv[1:]
    try:
        release = last_release()
        release.extract(Path(folder), *paths)
    except NoReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{release.version} ({release.place}, {release.commit[:12]}) is in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
