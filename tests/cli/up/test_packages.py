"""Plugins in packages: the example is installed by pip, as a stranger's package would be."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import grpc.aio
import pytest
import yaml

from moorage.v1 import replica_pb2, replica_pb2_grpc
from tests.cli.support import MOORAGE, PATIENCE

SOURCE = Path(__file__).parents[2] / "data" / "acme-zone-spread"

POLICY = """\
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: ZoneSpread, weight: 5}]}}
  pluginConfig: [{name: ZoneSpread, args: {app: example.com/app}}]
"""


def run(*command: object, folder: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip_install(source: Path, target: Path) -> None:
    """Install without network and outside of this environment; hatchling is in it."""
    # Without these, pip would want wheels for the requirements of the build, or ask for its own.
    alone = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", *alone)
    run(*pip, "--target", target, source, folder=source)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example is installed in."""
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    pip_install(folder / "source", folder / "target")
    return folder / "target"


@pytest.fixture
def environment(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are started find what is installed."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(installed), os.getenv("PYTHONPATH", "")]))


def test_the_example_s_own_tests_pass(tmp_path: Path, environment: None) -> None:
    file = shutil.copy(SOURCE / "tests" / "test_zone_spread.py", tmp_path)
    quiet = ("-q", "-p", "no:asyncio", "-p", "no:cacheprovider")
    out = run(sys.executable, "-m", "pytest", *quiet, file, folder=tmp_path)
    assert "4 passed" in out


def test_a_policy_can_enable_it(tmp_path: Path, environment: None) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    shown = yaml.safe_load(run(MOORAGE, "config", "show", "policy.yaml", folder=tmp_path))
    (profile,) = shown["profiles"]
    assert {"name": "ZoneSpread"} in profile["plugins"]["filter"]["enabled"]
    assert {"name": "ZoneSpread", "weight": 5} in profile["plugins"]["score"]["enabled"]
    (config,) = (each for each in profile["pluginConfig"] if each["name"] == "ZoneSpread")
    assert config["args"]["app"] == "example.com/app"


async def test_a_filter_process_lists_it_with_its_origin(environment: None) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "moorage_apps", "services.filter"),
        *("--host=127.0.0.1", "--port=0", "--admin-host=127.0.0.1", "--admin-port=0"),
        "--shutdown-delay=0s",
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    try:
        async with asyncio.timeout(PATIENCE):
            served = json.loads(await process.stdout.readline())["grpc"]
            async with grpc.aio.insecure_channel(served) as to:
                stub = replica_pb2_grpc.ReplicaServiceStub(to)
                answer = await stub.ListPlugins(replica_pb2.ListPluginsRequest())
    finally:
        process.terminate()
        await process.wait()
    origins = {plugin.name: plugin.origin for plugin in answer.plugins}
    assert origins["ZoneSpread"] == "acme-zone-spread 1.0"
    assert origins["NodeName"] == "built-in"
