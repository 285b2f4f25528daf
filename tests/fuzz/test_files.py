"""Whatever a file is, a command that reads it ends with an exit code and a sentence."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.doctor.installation.schedulers import parsed
from cli.main import main
from cli.up.workload import read_workload
from moorage.errors import ConfigurationError
from tests.cli.support import dump, pod
from tests.conftest import EXAMPLES
from tests.fuzz.cases import ODD, bodies
from tests.fuzz.test_texts import DOCUMENT
from tools.golden.configurations import RECORDED, text_of
from tools.planes.objects import node

POLICY = json.loads((RECORDED.parent / "legacy-policy.json").read_text())

CLUSTER = dump(node("n1"), node("n2"), pod("there", nodeName="n1"))
PODS = {"apiVersion": "v1", "kind": "List", "items": [pod("new")]}
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}
WORDS = ("NodeResourcesFit", "HostName", "*", "5s", "1Gi", "default-scheduler", "Policy", "v1")

RECORDING = json.loads(RECORDED.read_text())["cases"]
CASES = [text_of(case) for case in RECORDING]


def schedulers() -> Iterator[Any]:
    """Yield the documents that kube-scheduler starts with, where they can be JSON."""
    for case in RECORDING:
        with contextlib.suppress(yaml.YAMLError, TypeError):
            document = yaml.safe_load(text_of(case) if case["starts"] else "\0")
            json.dumps(document)
            yield document


SCHEDULERS = list(schedulers())

FILES = {
    "policy": DOCUMENT,
    "legacy": POLICY,
    "scheduler": SCHEDULERS[0],
    "cluster": CLUSTER,
    "pods": PODS,
    "kubeconfig": KUBECONFIG,
}


def mutated(*documents: Any) -> st.SearchStrategy[bytes]:
    """Draw a document with something wrong, as JSON or as YAML, among others perhaps."""
    as_json = bodies(documents, (*ODD, *WORDS))
    return as_json | as_json.map(_as_yaml) | st.tuples(as_json, as_json).map(b"\n---\n".join)


def _as_yaml(text: bytes) -> bytes:
    try:
        return yaml.safe_dump(json.loads(text)).encode(errors="replace")
    except (ValueError, RecursionError, yaml.YAMLError):
        return text


def run(folder: Path, command: Sequence[str], **mutants: bytes) -> None:
    """Run a command on files, of which some are mutants."""
    for name, document in FILES.items():
        (folder / name).write_bytes(mutants.get(name, json.dumps(document).encode()))
    words = [str(folder / word[1:]) if word.startswith("@") else word for word in command]
    result = CliRunner().invoke(main, words)
    unexpected = result.exception is not None and not isinstance(result.exception, SystemExit)
    assert not unexpected, (mutants, result.exception)
    assert result.exit_code in (0, 1, 2)
    assert "Traceback" not in result.output
    assert result.exit_code == 0 or result.stderr.strip()


SIMULATE = ("simulate", "--cluster", "@cluster", "--pods", "@pods")

COMMANDS: dict[tuple[str, ...], str] = {
    ("config", "validate", "@policy"): "policy",
    ("config", "show", "@policy"): "policy",
    ("config", "extender", "@policy"): "policy",
    ("convert-policy", "@legacy"): "legacy",
    (*SIMULATE, "--scheduler-config", "@scheduler"): "scheduler",
    (*SIMULATE, "--config", "@policy"): "policy",
    SIMULATE: "cluster",
    (*SIMULATE, "-o", "json"): "pods",
    ("explain", "default/p", "--kubeconfig", "@kubeconfig"): "kubeconfig",
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@settings(max_examples=max(EXAMPLES // 2, 5))  # each is a whole command
@given(data=st.data())
def test_a_command_ends_with_a_sentence_whatever_its_file_is(
    tmp_path_factory: pytest.TempPathFactory, command: tuple[str, ...], data: st.DataObject
) -> None:
    name = COMMANDS[command]
    of_its_kind = mutated(*(SCHEDULERS if name == "scheduler" else [FILES[name]]))
    text = data.draw(of_its_kind | of_its_kind | mutated(*FILES.values()))
    run(tmp_path_factory.getbasetemp(), command, **{name: text})


@pytest.mark.parametrize(
    "part",
    [
        {"contexts": 5},
        {"contexts": [5]},
        {"contexts": [{"name": "x", "context": "y"}]},
        {"clusters": [{"name": "c", "cluster": 5}]},
        {"clusters": [{"name": "c", "cluster": {"server": 5, "extensions": [5]}}]},
        {"current-context": ["x"]},
        {"users": "u"},
    ],
)
def test_a_malformed_kubeconfig_ends_with_a_sentence(tmp_path: Path, part: Any) -> None:
    text = json.dumps({**KUBECONFIG, **part}).encode()
    run(tmp_path, ("explain", "default/p", "--kubeconfig", "@kubeconfig"), kubeconfig=text)


@given(text=st.sampled_from(CASES) | mutated(*SCHEDULERS).map(lambda text: text.decode("latin-1")))
def test_a_configuration_of_a_running_kube_scheduler_is_read_or_refused(text: str) -> None:
    parsed(text)


@given(text=mutated(CLUSTER, PODS))
def test_what_a_cluster_starts_with_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "workload"
    file.write_bytes(text)
    with contextlib.suppress(ConfigurationError):
        read_workload(str(file), None, ["moorage"])
