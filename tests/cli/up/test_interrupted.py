"""A signal before the result: what was decided is shown all the same."""

import asyncio
import signal
from pathlib import Path

import pytest
import yaml

from cli.up.cluster import PODS
from sandbox.client import Api
from tests.cli.support import PATIENCE, moorage, pod

SLOW = """\
import asyncio

from moorage import FilterPlugin

class Slow(FilterPlugin):
    async def prepare(self, pod, nodes):
        if pod.name >= "pod-3":
            await asyncio.sleep(3600)

    def filter_node(self, pod, node):
        return None
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_what_was_decided_is_shown(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pod(f"pod-{i}") for i in range(10)))
    async with moorage(
        tmp_path, "up", "--once", "--plugin", file, "--nodes=2", "--pods=pods.yaml"
    ) as command:
        await command.line("export KUBECONFIG=")
        async with asyncio.timeout(PATIENCE), Api(command.api) as api:
            async for _ in api.follow(PODS):
                pods, _ = await api.list(PODS)
                if sum("nodeName" in pod["spec"] for pod in pods) == 3:
                    break
        command.signal(number)
        assert await command.ended() == (130, "")
        assert "Interrupted; this has been decided so far:" in command.lines
        places = {name: place for name, (place, _) in command.rows().items()}
        assert all(places[f"default/pod-{i}"].startswith("node-") for i in range(3))
        assert set(places.values()) - {"pending"} <= {"node-0000", "node-0001"}
        assert any(line.startswith("3 of 10 pods bound, ") for line in command.lines)
        assert command.processes() == []
        assert list(command.home.iterdir()) == []
