"""The gate of the chart takes gates from groups, with rights that allow nothing else."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from click.testing import CliRunner

from cli.main import main
from moorage_host.kube import KubeClient, Response, connect
from tests.e2e.rights import Right, given, used
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

GATE = {"name": "moorage.io/group"}
OTHER = {"name": "example.com/quota"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(bare: World, folders: Path) -> AsyncIterator[World]:
    async with bare.secured(folders) as world:
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gate(world: World) -> AsyncIterator[KubeClient]:
    """The API server, with the rights of the gate."""
    client = await connect(world.plane.kubeconfig("gate"))
    yield client
    await client.close()


def member(name: str, group: str, *gates: Object) -> Object:
    labels = {"moorage.io/group": group, "moorage.io/group-size": "2"}
    return pod(name, "ganged", labels=labels, spec={"schedulingGates": list(gates)})


async def gates_of(world: World, name: str) -> list[Object] | None:
    found: list[Object] | None = (await world.pods())[name]["spec"].get("schedulingGates")
    return found


async def test_it_lets_a_group_go_by_its_token_and_has_no_right_to_spare(
    world: World, folders: Path
) -> None:
    await world.create(node("n1"), member("a", "train", GATE), member("b", "train", GATE, OTHER))
    kubeconfig = world.plane.kubeconfig("gate")
    options = [f"--admin={world.services.admin}", f"--ca-file={folders / 'ca' / 'ca.crt'}"]
    command = ["gate", "--once", f"--kubeconfig={kubeconfig}", *options]

    async def look() -> str:
        result = await asyncio.to_thread(CliRunner().invoke, main, command)
        assert result.exit_code == 0, result.output
        return result.output

    async def goes() -> bool:
        return "default/train: its 2 pods may go" in await look()

    await world.until(goes)
    assert [await gates_of(world, name) for name in "ab"] == [None, [OTHER]]
    log = world.plane.audit_log
    asked_by_gateway = Right("", "pods", "get")
    assert used(log, "gate") == given("gate") - {asked_by_gateway}
    assert used(log, "gate", "forbid") == set()


TAKES = {"schedulingGates": [OTHER]}
NOTHING_ELSE, NO_OTHER = b"nothing else of a pod", b"no scheduling gate but moorage.io/group"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metadata": {"labels": {"moorage.io/group-size": "1"}}, "spec": TAKES}, NOTHING_ELSE),
        ({"metadata": {"annotations": {"a": "b"}}, "spec": TAKES}, NOTHING_ELSE),
        ({"spec": {**TAKES, "activeDeadlineSeconds": 5}}, NOTHING_ELSE),
        ({"spec": {"schedulingGates": [GATE]}}, NO_OTHER),
        ({"spec": {"schedulingGates": None}}, NO_OTHER),
    ],
)
async def test_it_may_change_nothing_else(
    world: World, gate: KubeClient, change: Object, message: bytes
) -> None:
    if "held" not in await world.pods():
        await world.create(member("held", "held", GATE, OTHER))
    tries = itertools.count()

    async def in_force() -> bool:
        marked = {"metadata": {"annotations": {"try": str(next(tries))}}}
        return (await patch(gate, "held", marked)).status == 422

    await world.until(in_force)
    refused = await patch(gate, "held", change)
    assert (refused.status, message in refused.body) == (422, True), refused.body


async def patch(client: KubeClient, name: str, change: dict[str, Any]) -> Response:
    kind, body = "application/merge-patch+json", msgspec.json.encode(change)
    return await client.request("PATCH", f"{PODS}/{name}", body=body, content_type=kind, timeout=10)
