"""What plugins read in one namespace needs a Role there and no more, as the chart makes it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from gateway.cluster.kinds import AdditionalKinds
from gateway.cluster.metrics import WatchMetrics
from gateway.cluster.objects import ObjectTable
from moorage import ObjectKind
from moorage_host.kube import KubeClient
from tests.e2e.security.test_authentication import client
from tests.scenarios.world import World
from tools.manifests.rendering import render
from tools.planes.embedded import Object
from tools.planes.real import path_of
from tools.waiting import until

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

ALL = ObjectKind("v1", "configmaps")
SPOT = ObjectKind("v1", "configmaps", namespace="prices", label_selector="tier in (spot)")
ONE = ObjectKind("v1", "configmaps", namespace="prices", field_selector="metadata.name=cheap")


async def test_a_role_is_enough_for_what_is_read_in_one_namespace(
    bare: World,
) -> None:
    await create(bare.client, {"kind": "Namespace", "metadata": {"name": "prices"}})
    await create(bare.client, config_map("cheap", tier="spot"))
    await create(bare.client, config_map("dear"))
    async with following(bare.plane.kubeconfig("gateway")) as (table, kinds):
        await _check(bare.client, table, kinds)


async def _check(admin: KubeClient, table: ObjectTable, kinds: AdditionalKinds) -> None:
    role, binding = shown()
    kinds.need("policy", {SPOT: ["Spot"], ALL: ["All"]})
    await until(lambda: "; ".join(kinds.problems(60)).count("403") == 2)
    assert "in the namespace prices, where a Role will do" in kinds.missing([SPOT])
    await create(admin, role)
    await create(admin, binding)
    await kinds.synced([SPOT])
    assert [name.name for name in table] == ["cheap"]
    assert "403" in kinds.missing([ALL])
    # Changes come by the watch.
    await create(admin, config_map("free", tier="spot"))
    await until(lambda: {name.name for name in table} == {"cheap", "free"})
    # A rule with the name of an object allows what is selected by this name only.
    kinds.need("policy", {})
    rules = [{**role["rules"][0], "resourceNames": ["cheap"]}]
    path = f"{path_of(role)}/{role['metadata']['name']}"
    body = msgspec.json.encode({**role, "rules": rules})
    (await admin.request("PUT", path, body=body, timeout=10)).check()
    kinds.need("policy", {SPOT: ["Spot"], ONE: ["One"]})
    await kinds.synced([ONE])
    assert [name.name for name in table] == ["cheap"]
    await until(lambda: "403" in kinds.missing([SPOT]))


def shown() -> list[Object]:
    """Return the Role and its binding."""
    objects = render({"pluginReads": [{"resource": "configmaps", "namespace": "prices"}]})
    return [each for each in objects if each["metadata"].get("namespace") == "prices"]


def config_map(name: str, **labels: str) -> Object:
    metadata = {"name": name, "namespace": "prices", "labels": labels}
    return {"kind": "ConfigMap", "metadata": metadata, "data": {"cents": "1"}}


async def create(admin: KubeClient, obj: Object) -> None:
    obj = {"apiVersion": "v1", **obj}
    body = msgspec.json.encode(obj)
    (await admin.request("POST", path_of(obj), body=body, timeout=10)).check()


@asynccontextmanager
async def following(kubeconfig: Path) -> AsyncIterator[tuple[ObjectTable, AdditionalKinds]]:
    """Follow what plugins read with the rights of a process."""
    async with client(kubeconfig) as connected, asyncio.TaskGroup() as group:
        table = ObjectTable(lambda _: None)
        families = WatchMetrics(CollectorRegistry())
        kinds = AdditionalKinds(connected, table, families, limit=10_000)
        kinds.start(group)
        try:
            yield table, kinds
        finally:
            kinds.stop()
