"""`moorage up --plugin`: a file that changes is taken into use, and nothing else is lost."""

import re
import signal
from pathlib import Path

from cli.up.cluster import create as create_all
from sandbox.client import Api
from tests.cli.support import Command, moorage, pod
from tests.cli.up.test_up import MAX_TEMPERATURE

KEPT = ("api-server", "kube-scheduler")
REJECTS = MAX_TEMPERATURE.replace("> self.args.limit", "< 1000")
PREFERS = """
from moorage import ScorePlugin

class PrefersLast(ScorePlugin):
    def score_node(self, pod: Pod, node: Node) -> float:
        return 100.0 if node.name == "node-0001" else 0.0
"""


async def test_a_plugin_is_changed_broken_repaired_and_renamed(tmp_path: Path) -> None:
    file = tmp_path / "max_temperature.py"
    file.write_text(REJECTS)
    options = ("--plugin", file, "--nodes=2", "--scorers=2")
    async with moorage(tmp_path, "up", *options) as command:
        await command.line("Plugins are loaded again when their files change.")
        kept, count = command.processes(*KEPT), len(command.processes())
        assert len(kept) == 2
        for name in ("a", "b", "c"):  # the cache answers for the last of these equal pods
            await create(command, name)
            assert "Moorage" in await command.line(f"default/{name} -> pending: ")

        file.write_text(MAX_TEMPERATURE)
        line = await command.line("reloaded ")
        assert re.fullmatch(
            r"reloaded max_temperature\.py in [\d.]+ s: 3 pending pods are tried again", line
        )
        bound = {(await command.line("default/")).partition(":")[0][:-1] for _ in range(3)}
        assert bound == {f"default/{name} -> node-000" for name in ("a", "b", "c")}

        file.write_text("from moorage import (\n")
        await command.line("max_temperature.py:1: SyntaxError: ")
        await command.line("max_temperature.py: not reloaded, what was there before stays in use")
        await create(command, "d")
        await command.line("default/d -> node-")

        renamed = MAX_TEMPERATURE.replace("class MaxTemperature", "class Renamed")
        file.write_text(renamed + PREFERS)
        await command.line("Note: without --config, profile moorage enables just PrefersLast, Ren")
        await command.line("reloaded max_temperature.py in ")
        await create(command, "e")
        assert "PrefersLast" in await command.line("default/e -> node-0001: ")

        assert command.processes(*KEPT) == kept
        assert len(command.processes()) == count
        command.signal(signal.SIGINT)
        assert await command.ended() == (0, "")
        assert "5 of 5 pods bound, 0 pending" in command.lines
        assert command.processes() == []


POLLS = """
from pathlib import Path

from moorage import FilterPlugin

class Polls(FilterPlugin):
    async def start(self):
        self.poll(Path(__file__).with_name("prices.json").read_text, 0.1)

    def filter_node(self, pod, node):
        return None
"""


async def test_it_shows_when_background_work_begins_to_fail_and_when_that_ends(
    tmp_path: Path,
) -> None:
    file, prices = tmp_path / "polls.py", tmp_path / "prices.json"
    file.write_text(POLLS)
    prices.write_text("{}")
    async with moorage(tmp_path, "up", "--plugin", file, "--nodes=1") as command:
        await command.line("Plugins are loaded again when their files change.")
        prices.unlink()
        line = await command.line("Plugins fail: ")
        assert "plugin Polls in filter at 127.0.0.1:" in line
        assert "FileNotFoundError" in line
        prices.write_text("{}")
        await command.line("Plugins do not fail any more.")
        command.signal(signal.SIGINT)
        assert await command.ended() == (0, "")


async def create(command: Command, name: str) -> None:
    async with Api(command.api) as api:
        await create_all(api, [pod(name, schedulerName="moorage")])
