"""The client for krew is one file that needs Python and kubectl alone, with the same words."""

import asyncio
import base64
import json
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from cli.main import main as command
from cli.shared.gateway import finding, options
from cli.shared.gateway.client import OPERATOR_SECRET
from cli.thin import gateway as thin
from cli.thin.__main__ import aligned, main, pending
from cli.thin.__main__ import options as thin_options
from moorage_host.tls.identities import service_identity
from tests.cli.support import ROOT, moorage
from tests.needs import needed
from tools.inprocess.certificates import authority, write_folder
from tools.inprocess.gateway import gateway
from tools.release import krew

KUBECTL = """\
#!{python}
import json, sys, time
words = [each for each in sys.argv[1:] if each != "-n"]
answers = json.load(open({answers!r}))
if "port-forward" in words:
    if not answers["port"]:
        sys.exit("error: pods/portforward is forbidden")
    print("Forwarding from 127.0.0.1:%d -> 9090" % answers["port"], flush=True)
    time.sleep(3600)
kind = next(each for each in ("pods", "secret", "config") if each in words)
if kind not in answers:
    sys.exit("Error from server (Forbidden): %s is forbidden" % kind)
json.dump(answers[kind], sys.stdout)
"""
"""Stands in for kubectl, as the sandbox has no kubelet that forwards ports."""


def installed(folder: Path) -> Path:
    """Write the plugin as krew installs it; return its path."""
    with tarfile.open(fileobj=BytesIO(krew.archive(0))) as archive:
        archive.extractall(folder, filter="data")
    return folder / krew.PROGRAM


def gateway_pod(*, ready: bool = True, secured: bool = True) -> dict[str, Any]:
    probe = {"httpGet": {"scheme": "HTTPS" if secured else "HTTP"}}
    container = {
        "args": ["-m", "moorage_apps", "gateway"],
        "ports": [{"name": "admin", "containerPort": 9090}],
        "livenessProbe": probe,
    }
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    metadata = {"namespace": "moorage", "name": "gateway-1"}
    return {"metadata": metadata, "spec": {"containers": [container]}, "status": status}


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-in on the PATH; return the file with its answers."""
    answers, program = tmp_path / "answers.json", tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(KUBECTL.format(python=sys.executable, answers=str(answers)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return answers


def answer(file: Path, answers: Mapping[str, Any]) -> None:
    """Let the stand-in answer this; what is None is forbidden."""
    given = {name: each for name, each in answers.items() if each is not None}
    file.write_text(json.dumps(given))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def found(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Any]]:
    """Run a gateway with certificates; give answers of the stand-in that lead there."""
    folder = tmp_path_factory.mktemp("gateway")
    tls = write_folder(folder, authority(), "moorage-gateway", "moorage-operator", "127.0.0.1")
    names = ("tls.crt", "tls.key", "ca.crt")
    async with gateway(folder, tls=tls) as running:
        yield {
            "port": int(running.admin.rpartition(":")[2]),
            "pods": {"items": [gateway_pod()]},
            "secret": {
                "data": {n: base64.b64encode((tls / n).read_bytes()).decode() for n in names}
            },
            "config": {"clusters": [], "contexts": [{"context": {"namespace": "team"}}]},
        }


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("explain --pending", 0, "No pod is pending."),
        ("explain --pending -o json", 0, '"items": []'),
        ("explain web", 1, "moorage: there is no pod team/web"),
        ("explain pod/web -n other", 1, "there is no pod other/web"),
        ("explain default/web --node n1", 1, "there is no pod default/web"),
        ("explain", 2, "give a POD, or --pending for all pods without a node"),
        ("doctor", 1, ", 1 pod\nNot read: kube-scheduler"),
    ],
)
async def test_it_asks_the_gateway_with_the_operators_certificate(
    words: str,
    code: int,
    text: str,
    found: dict[str, Any],
    kubectl: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer(kubectl, found)
    assert await asyncio.to_thread(main, words.split()) == code
    assert text in "".join(capsys.readouterr())


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"pods": {"items": []}}, "no gateway runs in namespace moorage: give --gateway NAMESPACE"),
        ({"pods": None}, "moorage: Error from server (Forbidden): pods is forbidden"),
        ({"secret": None}, "Error from server (Forbidden): secret is forbidden"),
        ({"secret": {"data": {}}}, "Secret moorage/operator-tls cannot be used"),
        ({"port": 0}, "cannot forward a port to pod moorage/gateway-1: error: pods/portforward"),
        ({"port": 9}, "the gateway's admin port gives no answer: "),
    ],
)
async def test_what_keeps_it_from_asking_is_one_sentence(
    other: Mapping[str, Any],
    text: str,
    found: dict[str, Any],
    kubectl: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer(kubectl, {**found, **other})
    assert await asyncio.to_thread(main, ["explain", "--pending"]) == 1
    errors = capsys.readouterr().err
    assert text in errors
    assert "Traceback" not in errors


async def test_kubectl_runs_it_against_a_running_cluster(tmp_path: Path) -> None:
    kubectl, bin_folder = needed("kubectl"), installed(tmp_path / "bin").parent
    demo = ROOT / "deploy" / "demo"
    home = tmp_path / "home"
    home.mkdir()
    given = [f"--{each}={demo / each}.yaml" for each in ("nodes", "pods")]
    async with moorage(home, "up", *given, f"--config={demo / 'policy.yaml'}") as command:
        line = await command.line("export KUBECONFIG=")
        await command.line("The cluster stays up")

        async def run(*words: str) -> str:
            process = await asyncio.create_subprocess_exec(
                *(kubectl, "moorage", *words),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={
                    "PATH": f"{bin_folder}:{Path(kubectl).parent}:{os.environ['PATH']}",
                    "KUBECONFIG": line.partition("=")[2],
                    "HOME": str(tmp_path),
                },
            )
            out, _ = await process.communicate()
            return out.decode()

        shown = await run("explain", "misplaced")
        assert shown.startswith("default/misplaced is pending: none of 3 nodes suits it: ")
        assert "2      Moorage NodeGroup  nodeGroup of pod and node don't match" in shown
        assert "Next: change the pod or a node to what NodeGroup asks for" in shown
        listed = await run("explain", "--pending")
        assert "default/misplaced" in listed.splitlines()[1]
        assert "is not on demo but on demo-m02" in await run("explain", "hello-1-a", "--node=demo")


def test_it_imports_nothing_that_has_to_be_installed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import cli.thin.__main__; "
        "print(*{each.partition('.')[0] for each in sys.modules})"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(installed(tmp_path))],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    assert set(run.stdout.split()) - {*sys.stdlib_module_names, "__main__"} == {"cli", "moorage"}


def test_what_it_shares_with_the_command_is_equal() -> None:
    assert service_identity("gateway") == thin.IDENTITY
    assert thin.SECRET == OPERATOR_SECRET
    assert thin.LABEL == finding.LABEL
    assert thin.EXTENSION == options.EXTENSION


def test_lists_have_columns_and_say_how_much_is_left_out() -> None:
    item = {"pod": "a/b", "created": "now", "reason": "no\nroom"}
    assert list(pending({"items": [item], "pods": 3})) == [
        "PENDING POD  CREATED  WHY",
        "a/b          now      no room",
        "2 more pods are pending: -n NAMESPACE shows fewer",
    ]
    assert list(aligned([("A", "B")])) == ["A  B"]


def test_the_plugin_of_k9s_runs_a_command_that_both_clients_have() -> None:
    (plugin,) = yaml.safe_load((ROOT / "deploy/k9s/plugins.yaml").read_text())["plugins"].values()
    assert set(plugin) == {
        *("shortCut", "description", "scopes"),
        *("command", "background", "args"),
    }
    shell, line = plugin["args"]
    assert (plugin["command"], shell) == ("sh", "-c")
    line = line.replace("$NAMESPACE", "default").replace("$NAME", "web")
    words = shlex.split(line.replace("$CONTEXT", "a:b c").partition(" 2>&1")[0])
    assert words[:2] == ["kubectl", "moorage"]
    given = thin_options().parse_args(words[2:])
    assert (given.pod, given.context) == ("default/web", "a:b c")
    command.commands[words[2]].make_context("explain", words[3:])


def test_an_archive_is_the_same_bytes_each_time() -> None:
    assert krew.archive(7) == krew.archive(7)
    assert krew.archive(7) != krew.archive(8)


def test_without_the_address_of_the_repository_no_manifest_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MOORAGE_HOME", raising=False)
    monkeypatch.setattr(sys, "argv", ["krew", str(tmp_path)])
    assert krew.main() == 1
    assert "set MOORAGE_HOME" in capsys.readouterr().err
