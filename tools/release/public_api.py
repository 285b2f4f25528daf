"""Compares the public Python API with that of the last release: part of `make lint`.

Public is what `__all__` of the modules in PUBLIC names, with its members (docs/reference/
compatibility.md). A break fails unless the version in pyproject.toml allows it.
"""

import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import griffe
from packaging.version import Version

from tools.release.released import ROOT, NoReleaseError, last_release

PACKAGE = "moorage"
PUBLIC = ("", ".measurements", ".models", ".rules", ".snapshot", ".testing")
"""The public modules of the package."""


def main() -> int:
    """Return 1 if the API breaks in a way that the version does not allow."""
    version = Version(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
    try:
        release = last_release()
        with tempfile.TemporaryDirectory() as folder:
            old = release.extract(Path(folder), f"sdk/{PACKAGE}") / "sdk"
            found = list(breaks(old, ROOT / "sdk"))
    except NoReleaseError as error:
        print(f"The public API cannot be compared: {error}", file=sys.stderr)
        return 1
    last = Version(release.version)
    for line in found:
        print(line)
    summary = f"public API: {len(found)} breaks since {last} ({release.place})"
    if found and not allows_breaks(last, version):
        print(f"{summary}, which {version} does not allow: {advice(last)}")
        return 1
    print(f"{summary}, {version} is next")
    return 0


def breaks(old: Path, new: Path) -> Iterator[str]:
    """Yield a line for each break between two folders with the package."""
    before, after = _load(old), _load(new)
    public = (*_public(before), *_public(after))
    for suffix in PUBLIC:
        old_names, new_names = _exports(before, suffix), _exports(after, suffix)
        for name in sorted(old_names - new_names):
            yield f"{PACKAGE}{suffix}.__all__: {name}: Public object is no longer exported"
    for breakage in griffe.find_breaking_changes(before, after):
        path = breakage.obj.path
        if any(path == name or path.startswith(f"{name}.") for name in public):
            yield f"{breakage.obj.relative_filepath}: {path}: {breakage.kind.value}"


def allows_breaks(last: Version, version: Version) -> bool:
    """Whether Semantic Versioning lets a version break what its predecessor has."""
    if last.major:
        return version.major > last.major
    return (version.major, version.minor) > (last.major, last.minor)


def advice(last: Version) -> str:
    """Return what to do about a break."""
    needed = f"{last.major + 1}.0.0" if last.major else f"0.{last.minor + 1}.0"
    return f"mend it, or set the version in pyproject.toml to {needed} and name it in CHANGELOG.md"


def _load(folder: Path) -> griffe.Module:
    loaded = griffe.load(PACKAGE, search_paths=[folder], allow_inspection=False)
    assert isinstance(loaded, griffe.Module)
    return loaded


def _module(package: griffe.Module, suffix: str) -> griffe.Module:
    module = package[suffix.removeprefix(".")] if suffix else package
    assert isinstance(module, griffe.Module), suffix
    return module


def _exports(package: griffe.Module, suffix: str) -> frozenset[str]:
    return frozenset(map(str, _module(package, suffix).exports or ()))


def _public(package: griffe.Module) -> Iterator[str]:
    """Yield the paths of what the public modules export: where it is named, and defined."""
    for suffix in PUBLIC:
        module = _module(package, suffix)
        for name in _exports(package, suffix):
            member = module.members.get(name)
            if member is not None:
                yield f"{PACKAGE}{suffix}.{name}"
                if isinstance(member, griffe.Alias):
                    yield member.target_path


if __name__ == "__main__":
    sys.exit(main())
