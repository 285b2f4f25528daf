"""The image can be built for other platforms: the index has a wheel of each locked package.

It needs the package index.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.locks import locked
from tools.image.build import ROOT, pip_options

UV = Path(sys.executable).with_name("uv")
LOCKS = ("requirements-image.lock", "requirements-build.lock")


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("python", ["3.11", "3.13"])
def test_every_locked_package_has_a_wheel(
    tmp_path: Path, lock: str, machine: str, python: str
) -> None:
    index = pip_options().get("index-url")
    done = subprocess.run(
        [
            *(str(UV), "pip", "install", "--dry-run", "--target", str(tmp_path), "--no-deps"),
            *("--python-platform", f"{machine}-manylinux_2_28", "--python-version", python),
            *("--only-binary", ":all:", "--require-hashes", "-r", str(ROOT / lock)),
            *(("--default-index", index) if index else ()),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    names = {package.name for package in locked(ROOT / lock)}
    planned = {
        line.split()[1].partition("==")[0]
        for line in done.stderr.splitlines()
        if line.startswith(" + ")
    }
    assert planned == names
