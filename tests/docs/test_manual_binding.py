"""The how-to of binding by hand does what it says."""

import asyncio
import re
import shlex
import textwrap
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from cli.main import main
from sandbox.apiserver import ApiServer
from tools.docs.pages import DOCS
from tools.inprocess.api import Api


def shown(language: str) -> list[str]:
    text = (DOCS / "how-to" / "manual-binding.md").read_text()
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in found]


async def test_the_pod_of_the_page_is_bound_by_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (manifest,) = map(yaml.safe_load, shown("yaml"))
    lines = [line for block in shown("sh") for line in block.splitlines()]
    (command,) = (shlex.split(line)[1:] for line in lines if line.startswith("moorage"))
    async with ApiServer() as server:
        api = Api(server)
        api.node(command[-1])
        api.create("/api/v1/namespaces/default/pods", manifest)
        (tmp_path / "config").write_text(server.kubeconfig())
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        result = await asyncio.to_thread(CliRunner().invoke, main, command)
        assert result.output == f"pod {command[1]} is bound to node {command[2]}\n"
        assert api.node_of(manifest["metadata"]["name"]) == command[2]
