"""The scheduler's configuration, and the scheduler as a process of its own."""

import signal
from pathlib import Path

from tests.forked import forked
from tests.sandbox.scheduler.support import World
from tools.waiting import until

MODULE = "sandbox.scheduler"
CONFIG = Path(__file__).parents[3] / "deploy/files/kube-scheduler-config.yaml"


async def test_the_deployed_configuration_runs_against_the_sandbox_from_any_folder(
    world: World, tmp_path: Path
) -> None:
    world.node("a")
    world.pod("web")
    options = (f"--api-server={world.server.url}", f"--extender-url={world.extender.url}")
    async with forked(MODULE, *options, "--seed=1", directory=tmp_path) as scheduler:
        assert await scheduler.event() == {
            "event": "running",
            "apiServer": world.server.url,
            "schedulerNames": ["moorage"],
            "nodes": 1,
            "pods": 1,
        }
        await until(world.placed("web"))
        scheduler.process.send_signal(signal.SIGTERM)
        assert await scheduler.process.wait() == 0
    assert world.extender.verbs("web") == ["filter"]
    assert [event["reason"] for event in world.events("web")] == ["Scheduled"]


async def test_it_stops_while_the_api_server_is_away() -> None:
    nobody = "http://127.0.0.1:9"
    options = (f"--config={CONFIG}", f"--api-server={nobody}", f"--extender-url={nobody}")
    async with forked(MODULE, *options) as scheduler:
        assert scheduler.stderr
        await scheduler.stderr.readline()  # the first complaint
        scheduler.process.send_signal(signal.SIGTERM)
        code, errors = await scheduler.ended()
    assert code == 0, errors


async def test_a_bad_configuration_ends_it_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("kind: Policy")
    async with forked(MODULE, f"--config={path}") as scheduler:
        code, errors = await scheduler.ended()
    assert code == 1
    (line,) = errors.splitlines()
    assert line.startswith(f"moorage kube-scheduler: {path}:1: kind: this is of kind Policy"), line
