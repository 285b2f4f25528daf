"""`moorage up --once`: from the command line to the table, with real processes."""

import json
import re
import socket
from pathlib import Path

import pytest
import yaml

from tests.cli.support import ROOT, Command, dump, moorage, pod
from tools.planes.objects import node

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
import time

from moorage import FilterPlugin, ScorePlugin

class Raises(FilterPlugin):
    def filter_node(self, pod, node):
        raise ValueError("no thermometer")

class AnswersText(FilterPlugin):
    def filter_node(self, pod, node):
        return "too hot"

class Loops(FilterPlugin):
    def filter_node(self, pod, node):
        while True:
            pass

class Sleeps(FilterPlugin):
    def filter_node(self, pod, node):
        time.sleep(3600)

class RaisesInScore(ScorePlugin):
    def score_node(self, pod, node):
        raise KeyError("no data")

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


async def test_a_gated_pod_is_no_reason_to_wait(tmp_path: Path) -> None:
    gated = pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    (tmp_path / "both.yaml").write_text(yaml.safe_dump_all([node("n1"), gated, pod("free")]))
    command, code, errors = await once(tmp_path, "--nodes=both.yaml")
    assert (code, errors) == (0, "")
    assert "1 of 2 pods bound, 0 pending, 1 held by scheduling gates" in command.lines
    assert "scheduling gates" in command.rows()["default/gated"][1]


async def test_the_ten_line_plugin_decides_placements_on_a_dump_of_a_cluster(
    tmp_path: Path,
) -> None:
    hot, warm = ({"example.com/temperature": degrees} for degrees in ("90", "70"))
    cluster = dump(
        *(node(name, annotations=hot) for name in ("hot-1", "hot-2")),
        node("cool", annotations=warm),
        pod("stays", "prod", nodeName="hot-1"),
    )
    (tmp_path / "max_temperature.py").write_text(MAX_TEMPERATURE)
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pod(f"p{i}") for i in range(4)))

    command, code, errors = await once(
        tmp_path,
        *("--plugin", "max_temperature.py", "--nodes", "cluster.json", "--pods", "pods.yaml"),
    )

    assert (code, errors) == (0, "")
    rows = command.rows()
    assert {pod: place for pod, (place, _) in rows.items()} == {
        f"default/p{i}": "cool" for i in range(4)
    }
    assert "MaxTemperature rejected 2" in rows["default/p0"][1]
    note = "Note: without --config, profile moorage enables just MaxTemperature"
    assert command.lines[0] == note


async def test_the_pods_of_a_deployment_are_made_and_placed(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("any")["spec"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    }
    (tmp_path / "max_temperature.py").write_text(MAX_TEMPERATURE)
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(deployment))

    plugin = "--plugin=max_temperature.py"
    command, code, errors = await once(tmp_path, plugin, "--nodes=2", "--pods=web.yaml")

    assert (code, errors) == (0, "")
    rows = command.rows()
    assert len(rows) == 3
    assert all(re.fullmatch(r"default/web-[a-z0-9]+-[a-z0-9]{5}", name) for name in rows)
    assert all(place.startswith("node-") for place, _ in rows.values())
    assert "3 of 3 pods bound, 0 pending" in command.lines


async def test_a_plugin_that_fails_is_named_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "failing.py"
    file.write_text(FAILING)
    filters = ["Raises", "AnswersText", "Loops", "Sleeps"]
    profiles = [profile(name) for name in filters]
    profiles.append(profile("RaisesInScore", "ScoresText"))
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
    assert pending == {f"default/{name.lower()}" for name in filters}
    assert len(rows) == len(profiles)
    told = "\n".join(reason for _, reason in rows.values())
    for words, line in {
        "Raises failed in filter_node: ValueError: no thermometer": "7",
        # A wrong answer has no line of its own: it is the method's.
        "AnswersText failed in filter_node: filter_node must return Rejection or None": "10",
        "Loops failed in filter_node: it took longer than its time budget of 0.3 s": "1[56]",
        "Sleeps failed in filter_node: it took longer than its time budget of 0.3 s": "20",
        "RaisesInScore failed: KeyError: 'no data'": "24",
        "ScoresText failed: score_node must return a number, not str": "27",
    }.items():
        assert re.search(rf"{re.escape(words)}[^(]*\({re.escape(file.name)}:{line}\)", told), (
            words,
            told,
        )
    (kept,) = command.home.iterdir()
    assert errors == f"The logs of this run are in {kept}\n"
    assert (kept / "filter.log").stat().st_size


async def test_several_filters_are_asked_about_a_part_of_the_nodes_each(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(
        "from moorage import FilterPlugin, Rejection\n"
        "class Counting(FilterPlugin):\n"
        "    async def prepare(self, pod, nodes):\n"
        "        self.count = len(nodes)\n"
        "    def filter_node(self, pod, node):\n"
        "        return Rejection(f'asked about {self.count} nodes')\n"
    )
    given = ("--plugin", "counting.py", "--nodes=4", "--pods=1", "--filters=2")
    command, code, errors = await once(tmp_path, *given)
    assert (code, errors) == (0, "")
    ((_, reason),) = command.rows().values()
    assert "asked about 2 nodes" in reason


async def test_a_broken_plugin_is_one_line_that_begins_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("from moorage import (\n")
    _, code, errors = await once(tmp_path, "--plugin", "broken.py")
    assert code == 1
    assert errors.startswith("broken.py:1: SyntaxError: ")
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize("kind", ["filter", "score"])
async def test_a_plugin_that_does_not_start_is_named_with_its_line(
    tmp_path: Path, kind: str
) -> None:
    start = "\n    async def start(self) -> None:\n        raise ValueError('no sensor')\n"
    text = MAX_TEMPERATURE + start
    if kind == "score":
        text = text.replace("FilterPlugin", "ScorePlugin").replace("filter_node", "score_node")
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


async def test_a_process_that_does_not_start_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "moody.py").write_text(
        f"{MAX_TEMPERATURE}import sys\nif not sys.argv[0].endswith('moorage'): "
        "raise OSError('not here')\n"
    )
    _, code, errors = await once(tmp_path, "--plugin", "moody.py")

    assert code == 1
    line, directory = errors.splitlines()
    assert re.fullmatch(r"moody.py:13: OSError: not here \((filter|scorer-1|binder)\)", line)
    assert directory.startswith("The logs of this run are in ")


async def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _, code, errors = await once(tmp_path, f"--extender-port={port}")

    assert code == 1
    assert errors.startswith("moorage: gateway ended with exit code 1: moorage gateway: cannot ")
    assert f"127.0.0.1:{port}" in errors
    assert "--extender-port" in errors
    assert len(errors.splitlines()) == 2


def profile(name: str, *more: str) -> dict[str, object]:
    enabled = [{"name": plugin} for plugin in (name, *more)]
    return {
        "schedulerName": name,
        "plugins": {"multiPoint": {"enabled": enabled}},
        "pluginConfig": [{"name": name, "timeBudget": "300ms"}],
    }
