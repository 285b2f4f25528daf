"""Locks have hashes; the software bill of materials names what the lock does, each time."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.locks import locked

ROOT = Path(__file__).parents[2]


def test_it_is_the_lock_with_its_hashes_and_nothing_of_the_run(tmp_path: Path) -> None:
    recipe = re.search(r"^sbom:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert recipe is not None
    line = recipe[1].replace("\\\n", " ").splitlines()[1]
    command = line.replace("$(BIN)/python", sys.executable, 1).partition(" -o ")[0].split()
    target = tmp_path / "bom.json"
    subprocess.run([*command, "-o", str(target)], cwd=ROOT, check=True, timeout=100)
    bom = json.loads(target.read_text())
    found = {
        (each["name"], each["version"]): {
            f"sha256:{digest['content']}"
            for reference in each["externalReferences"]
            for digest in reference.get("hashes", ())
        }
        for each in bom["components"]
    }
    expected = {each.key: set(each.hashes) for each in locked(ROOT / "requirements-image.lock")}
    assert found == expected
    assert bom["metadata"]["component"]["name"] == "moorage"
    assert "serialNumber" not in bom  # it would be another each time, and so would the time
    assert "timestamp" not in bom["metadata"]


@pytest.mark.parametrize("lock", sorted(ROOT.glob("requirements*.lock")), ids=lambda p: p.name)
def test_every_locked_package_has_hashes(lock: Path) -> None:
    packages = list(locked(lock))
    assert packages
    assert [each.name for each in packages if not each.hashes] == []
