"""What scenarios need of a control plane, and the embedded one; the real one is in `real`."""

import asyncio
import json
from pathlib import Path
from typing import Any, Literal, Protocol

import aiohttp
import yaml

from cli.up.processes import free_ports
from sandbox import SHIPPED
from tools.planes.programs import Program

ROOT = Path(__file__).resolve().parents[2]

Identity = Literal["admin", "gateway", "binder", "gate", "capacity", "annotator", "scheduler"]
Object = dict[str, Any]


class Plane(Protocol):
    """An API server, and kube-schedulers that use it."""

    name: str
    directory: Path
    url: str
    audit_log: Path

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def kubeconfig(self, identity: Identity) -> Path:
        """Return how one of our processes, or the test, reaches the API server."""
        ...

    def scheduler(self, name: str, config: Object) -> Program:
        """Return a kube-scheduler with a KubeSchedulerConfiguration; it is not started."""
        ...

    def programs(self) -> list[Program]: ...


def shipped_config() -> Object:
    """Return the configuration that kube-scheduler is deployed with, but for plain text."""
    config: Object = yaml.safe_load(SHIPPED.read_text())
    for extender in config["extenders"]:
        del extender["enableHTTPS"], extender["tlsConfig"]
    return config


async def answers(url: str, *, ssl: bool = True, seconds: float = 5) -> bool:
    """Whether a GET is answered with success in time."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session,
            session.get(url, ssl=ssl) as response,
        ):
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


class EmbeddedPlane:
    """The embedded API server and the stand-in for kube-scheduler."""

    name = "embedded"

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.audit_log = directory / "audit.jsonl"
        self._config = directory / "admin.kubeconfig"
        self._server = Program(
            name="api-server",
            module="sandbox.apiserver",
            command=[
                f"--port={port}",
                f"--kubeconfig-out={self._config}",
                f"--audit-log={self.audit_log}",
                "--run-controllers",
                *options,
            ],
            log=directory / "api-server.log",
            ready=lambda: answers(f"{self.url}/readyz"),
        )

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()

    def kubeconfig(self, identity: Identity) -> Path:
        return self._config

    def scheduler(self, name: str, config: Object) -> Program:
        file = self.directory / f"{name}.yaml"
        file.write_text(json.dumps(config))
        log = self.directory / f"{name}.log"

        async def runs() -> bool:
            text = await asyncio.to_thread(log.read_text)
            return '"event":"running"' in text

        return Program(
            name=name,
            module="sandbox.scheduler",
            command=[f"--config={file}", f"--api-server={self.url}"],
            log=log,
            ready=runs,
        )

    def programs(self) -> list[Program]:
        return [self._server]
