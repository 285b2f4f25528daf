"""What counts as a break of the public API, and which versions allow one."""

from pathlib import Path

import pytest
from packaging.version import Version

from tools.release.public_api import PUBLIC, allows_breaks, breaks

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
