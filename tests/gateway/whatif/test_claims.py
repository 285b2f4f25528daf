"""A pod claims the same node wherever it is worked out: live, asked and simulated."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import main
from tests.gateway.whatif.plugins.even import Claiming, Even
from tools.inprocess.api import Object
from tools.inprocess.gateway import Gateway, Options, plane, policy_of

PLUGINS = Path(__file__).parent / "plugins"
POLICY = policy_of("{multiPoint: {enabled: [PLUGINS]}}")
WITHOUT_SCORES, WITH_SCORES = "{name: Claiming}", "{name: Claiming}, {name: Even}"

CREATED = ("n5", "n2", "n8", "n4", "n1", "n7", "n3", "n6")
CALLED = ("n6", "n1", "n8", "n3", "n5", "n4", "n7", "n2")
"""Rows, calls and files have orders of their own: none of them is that of another one."""

PODS = 6


@pytest.mark.parametrize("plugins", [WITHOUT_SCORES, WITH_SCORES])
async def test_a_claim_is_the_same_everywhere(tmp_path: Path, plugins: str) -> None:
    options: Options = {"policy": POLICY.replace("PLUGINS", plugins), "nodes": CREATED}
    async with plane(tmp_path, Claiming, Even, **options) as running:
        pods = [running.api.pod(f"p{i}", schedulerName="moorage") for i in range(PODS)]
        asked = [await _asked(running, pod) for pod in pods]
        live = [await _filtered(running, pod) for pod in pods]
        nodes = [running.api.read(f"/api/v1/nodes/{name}") for name in sorted(CREATED)]
    assert len(set(live)) > 1
    assert asked == live
    assert await asyncio.to_thread(_simulated, tmp_path, [*nodes], pods) == live


async def _filtered(running: Gateway, pod: Object) -> str:
    (node,) = (await running.filter(pod, *CALLED))["NodeNames"]
    return str(node)


async def _asked(running: Gateway, pod: Object) -> str:
    async with running.session.post(f"{running.admin}/simulate", json={"pod": pod}) as response:
        return str((await response.json())["claim"]["node"])


def _simulated(folder: Path, nodes: Iterable[Object], pods: Iterable[Object]) -> list[str]:
    (folder / "nodes.json").write_text(_listed("Node", nodes))
    (folder / "pods.json").write_text(_listed("Pod", pods))
    files = {"cluster": "nodes.json", "pods": "pods.json", "config": "policy.yaml"}
    options = [f"--{option}={folder / file}" for option, file in files.items()]
    arguments = ["simulate", "-o", "json", f"--plugin={PLUGINS}", *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    (answer,) = json.loads(result.stdout)["policies"]
    return [each["node"] for each in answer["placements"]]


def _listed(kind: str, items: Iterable[Object]) -> str:
    objects: list[Any] = [{**each, "apiVersion": "v1", "kind": kind} for each in items]
    for obj in objects:
        for container in obj["spec"].get("containers", ()):
            container.setdefault("image", "app:1")
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
