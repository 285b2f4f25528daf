"""What `helm test` makes: a real kube-scheduler places its pod by Moorage; /readyz answers it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from tests.scenarios.world import World
from tools.build import find
from tools.manifests.rendering import helm_test, layouts
from tools.planes.objects import node
from tools.planes.real import OUR_NAMESPACE

STEERED = "steered"
"""The profile of the world's policy."""

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(bare: World, folders: Path) -> AsyncIterator[World]:
    """A control plane with a node, and Moorage with certificates."""
    async with bare.secured(folders) as world:
        await world.create(node("n1"))
        yield world


def extender(folder: Path) -> dict[str, Any]:
    files = {"certFile": "tls.crt", "keyFile": "tls.key", "caFile": "ca.crt"}
    named = {name: str(folder / file) for name, file in files.items()}
    return {"enableHTTPS": True, "tlsConfig": {"serverName": "moorage-gateway", **named}}


async def kubectl(world: World, *words: str, given: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(str(find("kubectl")), f"--kubeconfig={world.plane.kubeconfig('admin')}", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate(given.encode())
    assert process.returncode == 0, out.decode()
    return out.decode()


async def test_its_pod_is_placed_by_moorage_and_says_that_the_gateway_is_ready(
    world: World, folders: Path, tmp_path: Path
) -> None:
    objects = helm_test({**layouts()["second-scheduler"], "schedulerName": STEERED})
    (hook,) = (each for each in objects if each["kind"] == "Pod")
    async with world.scheduler(**extender(folders / "scheduler")):
        applied = await kubectl(
            *(world, "apply", "--server-side", "--validate=strict", "-f-"),
            given=yaml.safe_dump_all(objects),
        )
        assert "Warning" not in applied
        path = f"/api/v1/namespaces/{OUR_NAMESPACE}/pods/test"

        async def is_placed() -> bool:
            return "nodeName" in (await world.read(path))["spec"]

        await world.until(is_placed)
    (container,) = hook["spec"]["containers"]
    (code,) = container["args"]
    host, _, port = world.services.admin.partition("://")[2].partition(":")
    here = code.replace('("test-gateway.moorage.svc", 9090)', repr((host, int(port))))
    here = here.replace("/etc/moorage/ca/ca.crt", str(folders / "operator" / "ca.crt"))
    assert here.count(str(folders)) == here.count(host) == 1
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-c", here), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    assert "the gateway's /readyz: 200 " in out.decode()
