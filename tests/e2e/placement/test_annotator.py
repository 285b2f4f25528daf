"""The annotator on a real API server, with the rights that deploy/ gives it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from moorage_host.kube import connect
from tests.cli.support import moorage
from tests.e2e.rights import Right, given, used
from tests.fake_prometheus import FakePrometheus, fake_prometheus
from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import node
from tools.planes.real import OUR_NAMESPACE, RealPlane

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

ACCOUNT = f"system:serviceaccount:{OUR_NAMESPACE}:annotator"
NODES = ("n1", "n2")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plane(bare: World) -> AsyncIterator[RealPlane]:
    assert isinstance(bare.plane, RealPlane)
    try:
        await bare.create(*map(node, NODES))
        yield bare.plane
    finally:
        await bare.empty()


@pytest_asyncio.fixture(loop_scope="session")
async def prometheus() -> AsyncIterator[FakePrometheus]:
    async with fake_prometheus() as fake:
        fake.measures({"mean-free-cpu": {"n1": 6000, "n2": 700}})
        yield fake


async def send(plane: RealPlane, method: str, path: str, body: Object | None = None) -> Any:
    client = await connect(plane.kubeconfig("admin"))
    try:
        encoded = None if body is None else msgspec.json.encode(body)
        answer = await client.request(method, path, body=encoded, timeout=30)
        return json.loads(answer.check().body)
    finally:
        await client.close()


async def annotate(
    home: Path, plane: RealPlane, prometheus: FakePrometheus, who: str = "annotator"
) -> tuple[int, list[str]]:
    """Run it as somebody; return the exit code and what it wrote."""
    kubeconfig = plane.directory / f"{who}.kubeconfig"
    given = ("--prometheus", prometheus.address, "--kubeconfig", kubeconfig, "--once")
    async with moorage(home, *given, module="services.annotator") as command:
        code, errors = await command.ended()
    return code, [*command.lines, *errors.splitlines()]


def events(plane: RealPlane) -> list[Any]:
    """Return what the annotator asked for."""
    found = map(json.loads, plane.audit_log.read_text().splitlines())
    return [event for event in found if event["user"]["username"] == ACCOUNT]


def folder(home: Path, name: str) -> Path:
    made = home / name
    made.mkdir()
    return made


async def test_it_writes_with_the_rights_that_it_is_given(
    plane: RealPlane, prometheus: FakePrometheus, tmp_path: Path
) -> None:
    code, lines = await annotate(folder(tmp_path, "first"), plane, prometheus)
    assert (code, lines[-1]) == (0, "2 of 2 nodes written, 0 unchanged")
    for name, free in (("n1", "6000"), ("n2", "700")):
        metadata = (await send(plane, "GET", f"/api/v1/nodes/{name}"))["metadata"]
        assert metadata["annotations"]["mean-free-cpu"] == free
        assert metadata["annotations"].keys() == {"mean-free-cpu", "load-measured-at"}
    code, lines = await annotate(folder(tmp_path, "second"), plane, prometheus)
    assert (code, lines[-1]) == (0, "0 of 2 nodes written, 2 unchanged")
    patched = [event for event in events(plane) if event["verb"] == "patch"]
    assert sorted(event["requestURI"] for event in patched) == [
        f"/api/v1/nodes/{name}?fieldManager=moorage-annotator" for name in NODES
    ]


async def test_it_needs_the_rights_that_it_is_given_and_no_others(
    plane: RealPlane, prometheus: FakePrometheus, tmp_path: Path
) -> None:
    await annotate(tmp_path, plane, prometheus)
    rights = {Right("", "nodes", verb) for verb in ("list", "patch")}
    assert given("annotator") == rights
    assert used(plane.audit_log, "annotator") == rights
    assert used(plane.audit_log, "annotator", "forbid") == set()


async def test_without_the_right_to_patch_the_reason_is_told(
    plane: RealPlane, prometheus: FakePrometheus, tmp_path: Path
) -> None:
    prometheus.measures({"mean-free-cpu": {"n1": 1, "n2": 1}})
    code, lines = await annotate(tmp_path, plane, prometheus, who="gateway")
    assert code == 1
    assert lines[-1] == "0 of 2 nodes written, 0 unchanged, 2 failed"
    (line,) = (line for line in lines if line.startswith("n1 "))
    assert 'cannot patch resource "nodes"' in line
