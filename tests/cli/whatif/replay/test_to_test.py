"""A recorded cycle becomes a test that fails until the plugin is mended."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.whatif.replay.outcome import Outcome, recorded_outcome
from gateway.journal.reading import find_segments, read_segment
from moorage.models import decode_node, decode_pod
from tests.cli.whatif.replay.recorded import PLUGINS, moorage


class Case(NamedTuple):
    pod: str
    node: str


def cases(journal: Path) -> tuple[Case, Case]:
    """Return a pod with a node that was rejected, and one with a node that was not the best."""
    names: dict[int, str] = {}
    rejected = outvoted = None
    for path in find_segments(journal):
        for _, record in read_segment(path):
            for node in record.state.nodes:
                names[node.row] = decode_node(node.json).name
            if not record.HasField("cycle"):
                continue
            outcome = recorded_outcome(record.cycle)
            pod = decode_pod(record.cycle.pod)
            name = f"{pod.namespace}/{pod.name}"
            if any(outcome.codes):
                rejected = Case(name, names[int(outcome.rows[outcome.codes > 0][0])])
            if (row := _disliked(outcome)) is not None:
                outvoted = Case(name, names[row])
    assert rejected
    assert outvoted
    return rejected, outvoted


def _disliked(outcome: Outcome) -> int | None:
    """Return a node that lost because FewPods likes it least."""
    raw = outcome.raw.get("FewPods")
    if raw is None or raw.min() == raw.max():
        return None
    row = int(outcome.scored[int(raw.argmin())])
    return None if row in outcome.best else row


def make(journal: Path, file: Path, case: Case, *options: str) -> None:
    made = moorage(
        "journal",
        "to-test",
        journal,
        "--pod",
        case.pod,
        "--plugin-path",
        PLUGINS,
        "-o",
        file,
        *options,
    )
    assert (made.exit_code, made.stderr) == (0, ""), made.output


def run(file: Path, plugins: Path) -> tuple[int, str]:
    """Run a test file with the plugins of a folder; return pytest's exit code and output."""
    file.write_text(file.read_text().replace(str(PLUGINS), str(plugins)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(
        command, cwd=file.parent, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout


@pytest.fixture
def mended(tmp_path: Path) -> Path:
    """The plugins without their mistakes."""
    folder = tmp_path / "mended"
    folder.mkdir()
    code = (PLUGINS / "crowded.py").read_text()
    code = code.replace(">= 20", ">= 110").replace("return float(", "return 100.0 - float(")
    (folder / "crowded.py").write_text(code)
    return folder


def test_a_wrong_rejection(journal: Path, tmp_path: Path, mended: Path) -> None:
    case, _ = cases(journal)
    file = tmp_path / "test_rejection.py"
    make(journal, file, case, "--expect-feasible", case.node)
    text = file.read_text()
    assert f"Crowded should let {case.node} pass, and rejects it: node is crowded." in text
    assert "1 of 60 nodes and 20 of" in text
    code, output = run(file, PLUGINS)
    assert (code, "node is crowded" in output) == (1, True), output
    code, output = run(file, mended)
    assert code == 0, output


def test_a_wrong_preference(journal: Path, tmp_path: Path, mended: Path) -> None:
    _, case = cases(journal)
    file = tmp_path / "test_preference.py"
    make(journal, file, case, "--expect-node", case.node, "--plugin", "FewPods")
    assert "2 of 60 nodes" in file.read_text()
    assert run(file, PLUGINS)[0] == 1
    code, output = run(file, mended)
    assert code == 0, output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "state what should have been decided with one of --expect-feasible NODE"),
        (("--expect-rejected", "node-0000"), "which plugin should have rejected node-0000?"),
        (("--expect-node", "nowhere"), "there was no node 'nowhere'"),
        (("--expect-node", "node-0000", "--attempt", "99"), "has these attempts of default/p0: 1"),
    ],
)
def test_what_cannot_be_expected_is_refused_with_the_next_step(
    journal: Path, options: tuple[str, ...], message: str
) -> None:
    made = moorage(
        "journal", "to-test", journal, "--pod", "default/p0", "--plugin-path", PLUGINS, *options
    )
    assert made.exit_code != 0
    assert message in made.stderr
