"""`make audit` without the network: what it takes for a problem."""

import json
from email.message import Message
from pathlib import Path

import pytest

from tools.dependencies.index import reported, withdrawn
from tools.dependencies.licences import licence, refused
from tools.dependencies.locks import locked

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("lock", sorted(ROOT.glob("requirements*.lock")), ids=lambda p: p.name)
def test_every_locked_package_has_hashes(lock: Path) -> None:
    packages = list(locked(lock))
    assert packages
    assert [each.name for each in packages if not each.hashes] == []


def test_a_package_without_a_hash_or_version_is_seen(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("a==1 \\\n    --hash=sha256:" + "0" * 64 + "\nb==2 ; python_version < '4'\n")
    assert [len(each.hashes) for each in locked(lock)] == [1, 0]
    lock.write_text("a>=1\n")
    with pytest.raises(ValueError, match="no exact version"):
        list(locked(lock))


@pytest.mark.parametrize(
    ("headers", "expression", "problem"),
    [
        ({"License-Expression": "GPL-3.0-only OR MIT"}, "GPL-3.0-only OR MIT", ""),
        ({"License-Expression": "MIT AND AGPL-3.0"}, "MIT AND AGPL-3.0", "not allowed"),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, "BSD-3-Clause", ""),
        ({"License": "Proprietary"}, "Proprietary", "not allowed"),
        ({}, "", "names no licence"),
    ],
)
def test_licences(headers: dict[str, str], expression: str, problem: str) -> None:
    package = Message()
    for name, value in {"Name": "x", **headers}.items():
        package[name] = value
    assert licence(package) == expression  # type: ignore[arg-type] # the same, untyped
    assert problem in refused(expression)
    assert bool(problem) == bool(refused(expression))


def test_what_pip_and_pip_audit_write_is_read() -> None:
    warning = "WARNING: The candidate selected for download or install is a yanked version: "
    warning += "'a' candidate (version 1.2 at file:///a.whl)\nReason for being yanked: broken\n"
    assert withdrawn(warning) == {("a", "1.2"): "yanked"}
    packages = [
        {"name": "a", "version": "1.2", "vulns": [{"id": "CVE-1"}]},
        {"name": "b", "version": "1", "vulns": []},
        {"name": "c", "skip_reason": "not found"},
    ]
    found, note = reported(json.dumps({"dependencies": packages}))
    assert found == {("a", "1.2"): "CVE-1"}
    assert note.endswith("knows 2 of 3 packages")
