"""Processes of filter and scorer come, go and are killed under load, and no cycle is lost."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from cli.up.processes import Process, free_ports
from tests.gateway.sharing import ALWAYS, NAMES
from tools.inprocess.gateway import Gateway, Options, plane, pod, ready, replicas_are
from tools.waiting import until


class Load:
    """Places pods one after another, and counts what came of it."""

    def __init__(self, running: Gateway) -> None:
        self._running = running
        self.placed = 0
        self.problems: list[Any] = []

    async def run(self) -> None:
        while True:
            obj = pod(f"p{self.placed}")
            answer = await self._running.filter(obj, *NAMES)
            if answer["Error"] or answer["NodeNames"] != NAMES:
                self.problems.append(answer)
            scores = await self._running.prioritize(obj, *NAMES)
            if len(scores) != len(NAMES):
                self.problems.append(scores)
            self.placed += 1

    async def more(self, count: int = 20) -> None:
        """Wait until so many more pods are placed."""
        enough = self.placed + count
        await until(lambda: self.placed >= enough, 60)


async def start(service: str, port: int, stack: AsyncExitStack, log: Path) -> Process:
    """Start a process; it is stopped when *stack* is closed."""
    options = ["--host=127.0.0.1", f"--port={port}", "--shutdown-delay=0"]
    options += ["--admin-host=127.0.0.1", "--admin-port=0"]
    process = Process(name=service, module=f"services.{service}", options=options, log=log)
    stack.push_async_callback(process.stop)
    await process.start()
    return process


async def test_replicas_come_and_go_under_load(tmp_path: Path) -> None:
    ports = free_ports(3)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    settings: Options = {**ALWAYS, "http_timeout": 60.0, "resolve_interval": 0.2, "waits": False}
    async with AsyncExitStack() as stack:
        log = tmp_path / "log"
        processes = [await start("scorer", ports[0], stack, log)]
        running = await stack.enter_async_context(
            plane(tmp_path, nodes=NAMES, scorer=addresses, **settings)
        )
        await ready(running)

        load = Load(running)
        placing = asyncio.create_task(load.run())
        await replicas_are(running, "scorer", 1)
        await load.more()
        processes += [await start("scorer", port, stack, log) for port in ports[1:]]
        await replicas_are(running, "scorer", len(ports))
        await load.more()
        assert running.sample("moorage_scattered_cycles_total", phase="score") > 0

        os.kill(processes[0].pid, signal.SIGKILL)
        await replicas_are(running, "scorer", len(ports) - 1)
        await load.more()
        for process in processes[1:-1]:
            os.kill(process.pid, signal.SIGTERM)
            assert "exit code 0" in await process.wait()
        await replicas_are(running, "scorer", 1)
        await load.more()

        assert not placing.done()
        placing.cancel()
        assert load.problems == []
        await asyncio.wait([placing])
