"""The scheduler as a process of its own."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp

from cli.up.processes import free_ports
from tests.sandbox.scheduler.support import World
from tools.waiting import until

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "deploy/files/kube-scheduler-config.yaml"


async def start(*options: str, folder: Path = ROOT) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "sandbox.scheduler", *options),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_the_deployed_configuration_runs_against_the_sandbox_from_any_folder(
    world: World, tmp_path: Path
) -> None:
    world.node("a")
    world.pod("web")
    process = await start(
        f"--api-server={world.server.url}",
        f"--extender-url={world.extender.url}",
        "--seed=1",
        folder=tmp_path,
    )
    assert process.stdout
    try:
        running = json.loads(await process.stdout.readline())
        assert running == {
            "event": "running",
            "apiServer": world.server.url,
            "schedulerNames": ["moorage"],
            "nodes": 1,
            "pods": 1,
        }
        await until(world.placed("web"))
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
    assert world.extender.verbs("web") == ["filter"]
    assert [event["reason"] for event in world.events("web")] == ["Scheduled"]


async def test_the_clusters_own_scheduler_places_pods_without_the_extender(world: World) -> None:
    world.node("a")
    world.pod("ours")
    world.pod("theirs", schedulerName="default-scheduler")
    (port,) = free_ports(1)
    process = await start(
        f"--config={CONFIG}",
        f"--api-server={world.server.url}",
        f"--extender-url={world.extender.url}",
        "--default-scheduler",
        f"--decisions-port={port}",
    )
    assert process.stdout
    try:
        running = json.loads(await process.stdout.readline())
        assert running["schedulerNames"] == ["moorage", "default-scheduler"]
        await until(world.placed("ours"))
        await until(world.placed("theirs"))
        offered = [(await decision(port, pod))["offered"] for pod in ("ours", "theirs")]
    finally:
        process.terminate()
        await process.communicate()
    assert offered == [1, 0]
    assert world.extender.verbs("ours") == ["filter"]
    assert world.extender.verbs("theirs") == []
    (event,) = world.events("theirs")
    assert event["reportingController"] == "default-scheduler"


async def decision(port: int, pod: str) -> dict[str, Any]:
    """Return what the process decided about a pod."""
    url = f"http://127.0.0.1:{port}/decisions/default/{pod}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        answer: dict[str, Any] = await response.json()
        return answer


async def test_it_stops_while_the_api_server_is_away() -> None:
    plain = "--extender-url=http://127.0.0.1:9"
    process = await start(f"--config={CONFIG}", "--api-server=http://127.0.0.1:9", plain)
    assert process.stderr
    await process.stderr.readline()  # the first complaint
    process.send_signal(signal.SIGTERM)
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


async def test_a_bad_configuration_ends_it_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("kind: Policy")
    process = await start(f"--config={path}")
    _, errors = await process.communicate()
    assert process.returncode == 1
    (line,) = errors.decode().splitlines()
    problem = f"{path}: not a valid KubeSchedulerConfiguration: "
    assert line.startswith(f"moorage kube-scheduler: {problem}")
