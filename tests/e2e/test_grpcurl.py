"""Every method of every service can be listed, described and called with the real grpcurl."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.scenarios.world import World
from tools.build import find
from tools.planes.embedded import EmbeddedPlane
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

OF_REPLICAS = {"FollowProblems", "FollowRetries", "GetState", "ListPlugins", "Session"}
METHODS = {
    ("filter", "FilterService"): {"Filter"},
    ("filter", "ReplicaService"): OF_REPLICAS,
    ("scorer", "ScorerService"): {"Score"},
    ("scorer", "ReplicaService"): OF_REPLICAS,
    ("binder", "BinderService"): {
        *("Barrier", "Bind", "FollowState", "ListPlugins", "RetryPods", "Session")
    },
}
SERVICES = {(kind, method): name for (kind, name), methods in METHODS.items() for method in methods}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with World.started(EmbeddedPlane(tmp_path_factory.mktemp("grpcurl"))) as started:
        await started.nodes(node("n1", labels={"nodeGroup": "1"}), node("n2"))

        async def known() -> bool:
            states = [await call(started, kind, "GetState", {}) for kind in ("filter", "scorer")]
            return all(state.get("nodeCount") == 2 for state in states)

        await started.until(known)
        yield started


async def grpcurl(world: World, kind: str, *words: str, data: object = None) -> str:
    """Run grpcurl against a service; return what it prints."""
    target = world.services.target("scorer-1" if kind == "scorer" else kind)
    body = () if data is None else ("-d", json.dumps(data))
    process = await asyncio.create_subprocess_exec(
        *(str(find("grpcurl")), "-plaintext", *body, target, *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def call(world: World, kind: str, method: str, data: object) -> Any:
    """Call a method; return its first answer."""
    name = f"moorage.v1.{SERVICES[kind, method]}/{method}"
    return json.JSONDecoder().raw_decode(await grpcurl(world, kind, name, data=data))[0]


@pytest.mark.parametrize(("kind", "name"), METHODS)
async def test_services_and_methods_are_listed_and_described(
    world: World, kind: str, name: str
) -> None:
    service = f"moorage.v1.{name}"
    assert service in (await grpcurl(world, kind, "list")).split()
    listed = (await grpcurl(world, kind, "list", service)).split()
    assert {f"{service}.{method}" for method in METHODS[kind, name]} == set(listed)
    text = await grpcurl(world, kind, "describe", service)
    for method in METHODS[kind, name]:
        assert f"rpc {method} (" in text
    more = await grpcurl(world, kind, "describe", listed[0])
    request = more.split("(")[1].split(")")[0].split()[-1].lstrip(".")
    assert "message" in await grpcurl(world, kind, "describe", request)


async def test_filter(world: World) -> None:
    manifest = pod("p", "moorage", labels={"nodeGroup": "1"})
    manifest["metadata"]["uid"] = "u"
    answer = await call(world, "filter", "Filter", {"pod": {"manifest": manifest}})
    assert answer["feasible"] == ["n1"]


@pytest.mark.parametrize("kind", ["filter", "scorer", "binder"])
async def test_health(world: World, kind: str) -> None:
    text = await grpcurl(world, kind, "grpc.health.v1.Health/Check", data={})
    assert "SERVING" in text
