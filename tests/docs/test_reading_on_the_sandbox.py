"""The documentation's plugins that read other kinds run on `moorage up`."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.support import moorage, pod
from tools.docs.pages import DOCS, blocks
from tools.planes.objects import node

RACKS: list[dict[str, Any]] = [
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "racks.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "racks", "kind": "Rack"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    },
    *(
        {
            "apiVersion": "example.com/v1",
            "kind": "Rack",
            "metadata": {"name": name},
            "status": {"freeWatts": watts},
        }
        for name, watts in (("cold", 900), ("hot", 0))
    ),
    node("n-cold", labels={"example.com/rack": "cold"}),
    node("n-hot", labels={"example.com/rack": "hot"}),
]


def nominated(name: str, node: str) -> dict[str, Any]:
    """Build a pod that fits nowhere yet, and is to be placed on a node once there is room."""
    made = pod(name)
    made["spec"]["nodeSelector"] = {"example.com/none": "yes"}
    return {**made, "status": {"nominatedNodeName": node}}


def in_job(name: str) -> dict[str, Any]:
    made = pod(name)
    made["metadata"]["labels"] = {"example.com/job": "a", "example.com/job-size": "2"}
    return made


def test_all_examples_that_read_are_run_here() -> None:
    reading = {
        block.text.partition("\n")[0]
        for block in blocks("python")
        if block.page.parent == DOCS / "how-to" / "plugins"
        and re.search(r"^    reads = ", block.text, re.M)
    }
    assert reading == {
        "# rack_power.py",
        "# pod_state.py",
        "# one_rack.py",
    }


@pytest.mark.parametrize(
    ("plugin", "objects", "place"),
    [
        ("rack_power.py", RACKS, "n-cold"),
        ("pod_state.py", [node("n-a"), node("n-b"), nominated("next", "n-a")], "n-b"),
        (
            "one_rack.py",
            [node("n-a", labels={"example.com/rack": "r"}), in_job("b"), in_job("web")],
            "n-a",
        ),
    ],
)
async def test_a_plugin_that_reads_runs_on_the_sandbox(
    tmp_path: Path, plugin: str, objects: list[dict[str, Any]], place: str
) -> None:
    (text,) = {b.text for b in blocks("python") if b.text.startswith(f"# {plugin}\n")}
    (tmp_path / plugin).write_text(text)
    pods = [] if any(each["metadata"]["name"] == "web" for each in objects) else [pod("web")]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([*objects, *pods]))
    options = ("--once", "--nodes=all.yaml", f"--plugin={plugin}")
    async with moorage(tmp_path, "up", *options) as command:
        code, errors = await command.ended()
    printed = "\n".join(command.lines)
    assert code == 0, errors
    assert re.search(rf"\bweb\b.* {place}\b", printed), printed
