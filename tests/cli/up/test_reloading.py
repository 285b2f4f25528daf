"""`moorage up --plugin`: changed files are noticed, tried apart, and taken into use."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.up.cluster import create as create_all
from cli.up.reloading import changes, check
from sandbox.client import Api
from tests.cli.support import PATIENCE, Command, moorage, pod
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
        await command.line("max_temperature.py: not reloaded; the previous version stays in use")
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


MOODY = """
import sys
from pathlib import Path

from moorage import ScorePlugin

class Moody(ScorePlugin):
    async def start(self):
        if "--share-port" in sys.argv and Path(__file__).with_name("broken").exists():
            raise OSError("no license")
        self.poll(Path(__file__).with_name("prices.json").read_text, 0.1)

    def score_node(self, pod, node):
        return 1.0
"""
ENABLED = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- schedulerName: moorage
  plugins: {{multiPoint: {{enabled: [{{name: Moody}}]}}}}
  pluginConfig: [{{name: Moody, timeBudget: {budget}}}]
"""


async def test_what_works_no_longer_is_shown_and_another_policy_restarts_nothing(
    tmp_path: Path,
) -> None:
    file, policy = tmp_path / "moody.py", tmp_path / "policy.yaml"
    broken, prices = tmp_path / "broken", tmp_path / "prices.json"
    file.write_text(MOODY)
    prices.write_text("{}")
    policy.write_text(ENABLED.format(budget="2s"))
    options = ("--plugin", file, "--config", policy, "--nodes=1")
    async with moorage(tmp_path, "up", *options) as command:
        await command.line("Plugins are loaded again when their files change.")
        prices.unlink()
        line = await command.line("Plugins fail: ")
        assert "plugin Moody in scorer at 127.0.0.1:" in line
        assert "FileNotFoundError" in line
        prices.write_text("{}")
        await command.line("Plugins do not fail any more.")

        before = command.processes()
        policy.write_text(ENABLED.format(budget="3s"))
        await command.line("reloaded policy.yaml in ")
        assert command.processes() == before

        broken.touch()
        file.write_text(f"{MOODY}\n# changed\n")
        await command.line("Note: pods are placed without scores: ")
        await command.line("moody.py: loaded, but not in use")
        assert "no license" in command.lines[-2]
        broken.unlink()
        await command.line("Pods are placed with scores again.")
        assert command.processes() != before
        command.signal(signal.SIGINT)
        assert await command.ended() == (0, "")


async def create(command: Command, name: str) -> None:
    async with Api(command.api) as api:
        await create_all(api, [pod(name, schedulerName="moorage")])


async def test_a_file_that_can_be_used_gives_a_policy(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(f"print('{{}}')\n{MAX_TEMPERATURE}")
    found = await check(None, [file])
    assert found.problem == ""
    assert found.revision
    assert "name: MaxTemperature" in found.text


async def test_a_weight_from_the_command_line_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(
        "from moorage import ScorePlugin\nclass Heavy(ScorePlugin):\n"
        "    def score_node(self, pod, node):\n        return 1.0\n"
    )
    assert "weight: 20" in (await check(None, [file], {file: 20})).text


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("from moorage import (\n", "{file}:1: SyntaxError: '(' was never closed"),
        (
            "\n    async def start(self):\n        raise ValueError('boom')\n",
            "{file}:14: plugin MaxTemperature of profile moorage does not start: ValueError: boom",
        ),
        (
            "import os\nos._exit(0)\n",
            "{file}:13: SystemExit: os._exit(0)",
        ),
    ],
)
async def test_what_is_wrong_is_named_with_its_place_first(
    tmp_path: Path, code: str, problem: str
) -> None:
    file = tmp_path / "a.py"
    before = "" if code.startswith("from") else MAX_TEMPERATURE
    file.write_text(before + code)
    assert (await check(None, [file])).problem == problem.format(file=file)


async def test_a_file_that_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.up.reloading.CHECK_SECONDS", 0.5)
    (tmp_path / "a.py").write_text("while True: pass\n")
    found = await check(None, [tmp_path / "a.py"])
    assert found.problem == "the plugins are not loaded after 0.5 s"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.up.reloading.LOOK_SECONDS", 0.01)


class Watched:
    def __init__(self, *paths: Path) -> None:
        self._changes: AsyncIterator[list[Path]] = changes(paths)
        self._next = asyncio.ensure_future(anext(self._changes))

    async def next(self) -> list[str]:
        async with asyncio.timeout(PATIENCE):
            found = await self._next
        self._next = asyncio.ensure_future(anext(self._changes))
        return [path.name for path in found]

    async def begin(self) -> None:
        await asyncio.sleep(0)  # the first look is before the first change

    def end(self) -> None:
        self._next.cancel()


async def test_a_file_that_is_written_replaced_or_gone_has_changed(tmp_path: Path) -> None:
    file, other = tmp_path / "a.py", tmp_path / "b.py"
    file.write_text("1")
    watched = Watched(file)
    await watched.begin()
    other.write_text("2")  # is not watched
    file.write_text("22")
    assert await watched.next() == ["a.py"]
    other.replace(file)  # as editors do that write a copy first
    assert await watched.next() == ["a.py"]
    file.unlink()
    assert await watched.next() == ["a.py"]
    watched.end()


async def test_python_files_of_a_folder_may_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    watched = Watched(tmp_path)
    await watched.begin()
    (tmp_path / "notes.txt").write_text("no plugin")
    (tmp_path / "b.py").write_text("2")
    assert await watched.next() == ["b.py"]
    os.utime(tmp_path / "a.py", ns=(1, 1))
    (tmp_path / "b.py").unlink()
    assert await watched.next() == ["a.py", "b.py"]
    watched.end()
