"""What the image of deploy/Dockerfile holds, and what it does not.

It needs root, buildah, mmdebstrap, Debian's archive and the package index.
"""

import json
import re
import shutil
import stat
import sys
from pathlib import Path, PurePosixPath

import pytest

from tests.deploy.wheel import HOME_PAGE
from tools.image.build import ROOT, BuildError, Layout, build, commit, run, version
from tools.image.isolated import TMP, Isolated

pytestmark = pytest.mark.timeout(600)

POLICY = """\
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- schedulerName: moorage
  plugins: {multiPoint: {enabled: [{name: ZoneSpread}]}}
"""
UNWANTED = re.compile(
    r"/(pip|ensurepip|grpc_tools|hatchling|pytest|tests?|\.git|\.env|\.netrc|pip\.conf)$"
    r"|bin/(ba|da)?sh$|bin/(apt|dpkg|busybox|perl|git|pip3?)$"
    r"|/id_(rsa|ecdsa|ed25519)$|\.(key|p12|jks|kubeconfig)$"
)


def test_the_same_sources_give_the_same_image(layouts: tuple[Layout, Layout]) -> None:
    first, second = layouts
    assert first.layers == second.layers
    assert first.digest == second.digest


def test_the_image_says_what_it_is(layouts: tuple[Layout, Layout]) -> None:
    config = layouts[0].config
    assert config["User"] == "65532:65532"
    assert config["Cmd"] == ["moorage", "--help"]
    labels = {k.removeprefix("org.opencontainers.image."): v for k, v in config["Labels"].items()}
    assert labels["version"] == version(ROOT)
    assert labels["revision"] == commit("%H")
    assert labels["licenses"] == "Apache-2.0"
    assert labels["source"] == labels["url"] == HOME_PAGE
    assert labels["documentation"] == f"{HOME_PAGE}/blob/v{version(ROOT)}/docs/index.md"


def test_nothing_is_inside_that_a_process_does_not_need(layouts: tuple[Layout, Layout]) -> None:
    members = list(layouts[0].members())
    assert [m.name for m in members if UNWANTED.search(f"/{m.name}")] == []
    assert {(m.uid, m.gid) for m in members} == {(0, 0)}
    assert [m.name for m in members if m.mode & (stat.S_ISUID | stat.S_ISGID)] == []
    writable = [m.name for m in members if not m.issym() and m.mode & (stat.S_IWGRP | stat.S_IWOTH)]
    assert [PurePosixPath(name).name for name in writable] == ["tmp"]


def test_no_file_holds_a_private_key(image: Isolated) -> None:
    key = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}")
    files = [path for path in image.root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 1000
    assert [path for path in files if key.search(path.read_bytes())] == []


def test_packages_of_the_distribution_are_listed_for_scanners(image: Isolated) -> None:
    listed = {path.name for path in (image.root / "var/lib/dpkg/status.d").iterdir()}
    assert {"libc6", "libssl3", "python3.11-minimal", "libpython3.11-stdlib"} <= listed
    assert all((image.root / "usr/share/doc" / name / "copyright").exists() for name in ["libc6"])


def test_a_program_can_write_to_tmp_alone(image: Isolated) -> None:
    code = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
writable = [
    folder for folder, folders, files in os.walk("/")
    if not folder.startswith(("/proc", "/sys")) and os.access(folder, os.W_OK)
]
print(json.dumps([os.getuid(), os.getgid(), os.getgroups(), status["CapEff"].strip(),
                  status["NoNewPrivs"].strip(), writable]))
"""
    found = json.loads(image.run("python", "-c", code))
    assert found == [65532, 65532, [], "0" * 16, "1", ["/tmp"]]


def test_modules_come_compiled_and_traces_are_installed(image: Isolated) -> None:
    code = """
import opentelemetry.exporter.otlp.proto.http.trace_exporter, opentelemetry.sdk.trace, os, sys
cached = {name: getattr(module, "__cached__", None) for name, module in sys.modules.items()}
compiled = [file for file in cached.values() if file and os.path.exists(file)]
print(len(compiled) > 200, [name for name, file in cached.items() if file not in compiled and file])
"""
    assert image.run("python", "-c", code) == "True []\n"


def test_packages_that_are_added_bring_plugins(image: Isolated, tmp_path: Path) -> None:
    packages = image.root / "moorage/packages"
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation")
    run(*pip, f"--target={packages}", str(ROOT / "tests/data/acme-zone-spread"))
    try:
        (tmp_path / "policy.yaml").write_text(POLICY)
        mounts = {**TMP, "/etc/moorage/policy.yaml": tmp_path / "policy.yaml"}
        image.run("moorage", "config", "validate", "/etc/moorage/policy.yaml", mounts=mounts)
    finally:
        shutil.rmtree(packages)


def test_an_engine_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="apt-get install buildah mmdebstrap"):
        build(tmp_path / "out")
