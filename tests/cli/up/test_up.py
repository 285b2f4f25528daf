"""`moorage up --once`: from the command line to the table, with real processes."""

import re
import socket
from pathlib import Path

import yaml

from tests.cli.support import ROOT, Command, moorage, pod

DEMO = ROOT / "deploy" / "demo"

MAX_TEMPERATURE = """\
from moorage import Annotated, Arguments, FilterPlugin, Meta, Node, Pod, Rejection

class MaxTemperature(FilterPlugin):
    \"\"\"Keeps pods off nodes that run hot.\"\"\"

    class Args(Arguments):
        limit: Annotated[float, Meta(gt=0)] = 80.0  # degrees Celsius

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if float(node.annotations.get("example.com/temperature", 0)) > self.args.limit:
            return Rejection("node is too hot")
"""

FAILING = """\
from moorage import FilterPlugin, ScorePlugin

class Raises(FilterPlugin):
    def filter_node(self, pod, node):
        raise ValueError("no thermometer")

class Loops(FilterPlugin):
    def filter_node(self, pod, node):
        while True:
            pass

class ScoresText(ScorePlugin):
    def score_node(self, pod, node):
        return "best"
"""


async def once(home: Path, *arguments: object) -> tuple[Command, int, str]:
    async with moorage(home, "up", "--once", *arguments) as command:
        code, errors = await command.ended()
        assert command.processes() == []
    return command, code, errors


async def test_the_demonstration_puts_each_app_on_its_group_and_the_notebook_on_its_image(
    tmp_path: Path,
) -> None:
    files = [f"--{name}={DEMO}/{name}.yaml" for name in ("nodes", "pods")]
    command, code, errors = await once(tmp_path, *files, f"--config={DEMO}/policy.yaml")

    assert (code, errors) == (0, "")
    places = {pod: place for pod, (place, _) in command.rows().items()}
    assert places == {
        "default/hello-1-a": "demo-m02",
        "default/hello-1-b": "demo-m02",
        "default/hello-2-a": "demo-m03",
        "default/hello-2-b": "demo-m03",
        "default/notebook": "demo-m03",
        "default/misplaced": "pending",
    }
    reasons = {pod: reason for pod, (_, reason) in command.rows().items()}
    assert "ImageLocality" in reasons["default/notebook"]
    assert "NodeGroup" in reasons["default/hello-1-a"]
    assert "nodeGroup of pod and node don't match" in reasons["default/misplaced"]
    assert "5 of 6 pods bound, 1 pending" in command.lines
    assert list(command.home.iterdir()) == []


async def test_a_plugin_that_fails_is_named_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    profiles = [profile(name) for name in ("Raises", "Loops", "ScoresText")]
    header = {"apiVersion": "moorage.io/v1alpha1", "kind": "MoorageConfiguration"}
    policy = {**header, "profiles": profiles}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    names = [str(profile["schedulerName"]) for profile in profiles]
    pods = [pod(name.lower(), schedulerName=name) for name in names]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))

    command, code, errors = await once(
        tmp_path,
        *("--plugin", file, "--config", "policy.yaml", "--pods", "pods.yaml", "--nodes", "2"),
    )

    assert code == 1
    rows = command.rows()
    pending = {pod for pod, (place, _) in rows.items() if place == "pending"}
    assert pending == {"default/raises", "default/loops"}
    assert len(rows) == len(profiles)
    told = "\n".join(reason for _, reason in rows.values())
    for words, line in {
        "Raises failed in filter_node: ValueError: no thermometer": "5",
        "Loops failed in filter_node: it took longer than its time budget of 0.3 s": "9|10",
        # A wrong answer has no line of its own: it is the method's.
        "ScoresText failed: score_node must return a number, not str": "13",
    }.items():
        named = rf"{re.escape(words)}[^(]*\({re.escape(file.name)}:({line})\)"
        assert re.search(named, told), (words, told)
    (kept,) = command.home.iterdir()
    assert errors == f"The logs of this run are in {kept}\n"
    assert (kept / "filter.log").stat().st_size


async def test_a_plugin_that_does_not_start_is_named_with_its_line(tmp_path: Path) -> None:
    start = "\n    async def start(self) -> None:\n        raise ValueError('no sensor')\n"
    text = MAX_TEMPERATURE.replace("FilterPlugin", "ScorePlugin") + start
    text = text.replace("filter_node", "score_node")
    (tmp_path / "starts.py").write_text(text)
    _, code, errors = await once(tmp_path, "--plugin", "starts.py")
    assert code == 1
    assert errors.startswith("starts.py:14: plugin MaxTemperature of profile moorage ")


async def test_a_kind_that_the_cluster_does_not_have_is_named_with_what_adds_it(
    tmp_path: Path,
) -> None:
    racks = f"{MAX_TEMPERATURE}    reads = (ObjectKind('example.com/v1', 'racks'),)\n"
    (tmp_path / "racks.py").write_text(racks.replace("import ", "import ObjectKind, "))
    _, code, errors = await once(tmp_path, "--plugin", "racks.py")
    assert code == 1
    assert errors.splitlines()[0] == (
        "moorage: MaxTemperature reads racks of example.com/v1, which the embedded cluster does "
        "not have: put the CustomResourceDefinition that adds them into a file for --nodes or "
        "--pods"
    )


async def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _, code, errors = await once(tmp_path, f"--extender-port={port}")

    assert code == 1
    assert errors.startswith("moorage: gateway ended with exit code 1: moorage gateway: cannot ")
    assert f"127.0.0.1:{port}" in errors
    assert "--extender-port" in errors
    assert len(errors.splitlines()) == 2


def profile(name: str) -> dict[str, object]:
    return {
        "schedulerName": name,
        "plugins": {"multiPoint": {"enabled": [{"name": name}]}},
        "pluginConfig": [{"name": name, "timeBudget": "300ms"}],
    }
