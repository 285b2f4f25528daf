"""Builds the Go programs of the bench: two extenders to compare with, and the load.

Used by the bench, and by hand: python -m bench.processes.goprograms

The Go command is found, or installed, as for the end-to-end tests, and what is built is kept in the
same cache outside the tree; the key is the sources.
"""

import hashlib
import sys
from pathlib import Path

from tools import build

SOURCES = Path(__file__).parents[1] / "goextender"

NOTHING = "nothing"
"""An extender that keeps all nodes and gives all the same score."""

PLUGINS = "plugins"
"""An extender with three filters and three scores."""

CLIENT = "client"
"""The load."""

ALL = (NOTHING, PLUGINS, CLIENT)


def program(name: str) -> Path:
    """Return the path of a program, built if it is not there.

    Raises:
        BuildError: There is no Go, or it does not compile.
    """
    target = _cache() / name
    if not target.exists():
        build.provide(build.Tool(module=SOURCES, package=f"./{name}"), target)
    return target


def build_all() -> None:
    """Build what is not there, before anything is measured.

    Raises:
        BuildError: There is no Go, or something does not compile.
    """
    for name in ALL:
        program(name)


def are_built() -> bool:
    """Whether all is built."""
    return all((_cache() / name).exists() for name in ALL)


def _cache() -> Path:
    digest = hashlib.sha256()
    files = (f for f in SOURCES.rglob("*") if f.name in ("go.mod", "go.sum") or f.suffix == ".go")
    for file in sorted(files):
        digest.update(file.relative_to(SOURCES).as_posix().encode() + b"\0" + file.read_bytes())
    return build.cache_root() / f"bench-{digest.hexdigest()[:16]}"


if __name__ == "__main__":
    try:
        build_all()
    except build.BuildError as error:
        sys.exit(str(error))
