"""krew accepts the manifest and installs the archive, without the network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.wheel import HOME_PAGE, ROOT
from tools.build import find


def ran(*command: object, **environment: str) -> str:
    run = subprocess.run(
        [*map(str, command)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


@pytest.mark.timeout(600)
def test_krew_accepts_the_manifest_and_installs_the_plugin(tmp_path: Path) -> None:
    ran(sys.executable, "-m", "tools.release.krew", tmp_path, MOORAGE_HOME=HOME_PAGE)
    (archive,), (manifest,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.yaml")
    assert "structural validation OK" in ran(
        *(find("validate-krew-manifest"), "-manifest", manifest, "-skip-install", "-v=1")
    )
    root = tmp_path / "krew"
    given = (f"--manifest={manifest}", f"--archive={archive}")
    ran(find("krew"), "install", *given, KREW_ROOT=str(root))
    shown = ran(root / "bin" / "kubectl-moorage", "explain", "--help")
    assert "Every pod without a node" in shown
