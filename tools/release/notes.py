"""Checks the tag of a release, and writes its notes: `python -m tools.release.notes TAG FILE`.

The release workflow calls this. It prints the version.
"""

import re
import sys
import tomllib
from pathlib import Path

from tools.release.released import ROOT


class ReleaseError(Exception):
    """What is tagged cannot be released; the message has the next step."""


def version_of(tag: str, root: Path = ROOT) -> str:
    """Return the version that a tag names.

    Raises:
        ReleaseError: It is not that of pyproject.toml.
    """
    version: str = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    if tag != f"v{version}":
        raise ReleaseError(f"the tag is {tag}, pyproject.toml has {version}: tag v{version}")
    return version


def notes_of(version: str, root: Path = ROOT) -> str:
    """Return what the changelog has about a version.

    Raises:
        ReleaseError: It has nothing.
    """
    changelog = (root / "CHANGELOG.md").read_text()
    section = re.search(
        rf"^## {re.escape(version)}(?: - \d{{4}}-\d\d-\d\d)$(.*?)(?=^## |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    if section is None or not section[1].strip():
        raise ReleaseError(
            f"CHANGELOG.md has nothing about {version}: rename its section Unreleased to "
            f"`## {version} - YYYY-MM-DD`"
        )
    return section[1].strip() + "\n"


def main() -> int:
    """Return 1 if there is nothing to release."""
    if len(sys.argv) != 3:
        print("usage: python -m tools.release.notes TAG FILE", file=sys.stderr)
        return 2
    try:
        version = version_of(sys.argv[1])
        Path(sys.argv[2]).write_text(notes_of(version))
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print(version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
