"""Moorage's processes, run from an unpacked image beside an embedded API server."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.up.processes import free_ports
from moorage_host.kube import connect
from tests.scenarios.services import Services
from tests.scenarios.world import World
from tools.image.build import ROOT
from tools.image.isolated import Isolated
from tools.planes.embedded import EmbeddedPlane, answers
from tools.planes.programs import Program, start_all, stop_all

HOST = "127.0.0.1"
SERVICES = ("filter", "scorer", "binder")
KUBECONFIG = "--kubeconfig=/etc/moorage/kubeconfig"


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Gateway, filter, scorer and binder.

    Attributes:
        world: Creates objects on the API server.
        extender: The URL for kube-scheduler.
        targets: Where each service listens, as host:port.
        programs: All four.
    """

    world: World
    extender: str
    targets: dict[str, str]
    programs: list[Program]


@asynccontextmanager
async def started(image: Isolated, folder: Path) -> AsyncIterator[Processes]:
    """Start all, and wait until each is ready."""
    async with AsyncExitStack() as stack:
        plane = EmbeddedPlane(folder)
        stack.push_async_callback(plane.stop)
        await plane.start()
        client = await connect(plane.kubeconfig("admin"))
        stack.push_async_callback(client.close)
        shutil.copyfile(plane.kubeconfig("admin"), image.inputs / "kubeconfig")
        shutil.copyfile(ROOT / "deploy" / "demo" / "policy.yaml", image.inputs / "policy.yaml")
        listen = dict(zip(("gateway", *SERVICES), free_ports(len(SERVICES) + 1), strict=True))
        programs = _programs(image, folder, listen)
        stack.push_async_callback(stop_all, programs)
        await start_all(programs)
        yield Processes(
            world=World(plane, Services(plane), client),
            extender=f"http://{HOST}:{listen['gateway']}",
            targets={name: f"{HOST}:{listen[name]}" for name in SERVICES},
            programs=programs,
        )


def _programs(image: Isolated, folder: Path, listen: dict[str, int]) -> list[Program]:
    options = {name: [f"--host={HOST}", f"--port={listen[name]}"] for name in SERVICES}
    options["binder"].append(KUBECONFIG)
    options["gateway"] = [
        *(f"--{name}={HOST}:{listen[name]}" for name in SERVICES),
        *(f"--extender-host={HOST}", f"--extender-port={listen['gateway']}"),
        *(KUBECONFIG, "--config=/etc/moorage/policy.yaml"),
    ]
    admins = free_ports(len(options))
    return [
        _program(image, folder, name, [f"--admin-port={admin}", *options[name]], admin)
        for name, admin in zip(options, admins, strict=True)
    ]


def _program(image: Isolated, folder: Path, name: str, options: list[str], admin: int) -> Program:
    module = name if name == "gateway" else f"services.{name}"
    common = (f"--admin-host={HOST}", "--shutdown-delay=0s", *options)
    return Program(
        name=name,
        command=image.command("python", "-m", "moorage_apps", module, *common),
        log=folder / f"{name}.log",
        ready=lambda: answers(f"http://{HOST}:{admin}/readyz"),
    )
