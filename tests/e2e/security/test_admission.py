"""The API server checks what RBAC cannot: what the binder writes into a pod's status."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from moorage_host.kube import KubeClient, Response, connect
from tools.planes.objects import pod
from tools.planes.real import RealPlane
from tools.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/strategic-merge-patch+json"
ASKED = {"type": "moorage.io/RetryRequested", "status": "True", "reason": "License"}
OTHER = {"type": "Ready", "status": "True"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clients(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[KubeClient, KubeClient]]:
    """The admin and the binder, once the policy is in force; one of two pods is ours."""
    plane = RealPlane(tmp_path_factory.mktemp("admission"), profiles=("moorage", "batch"))
    try:
        await plane.start()
        admin = await connect(plane.kubeconfig("admin"))
        binder = await connect(plane.kubeconfig("binder"))
        try:
            for name, profile in (("ours", "batch"), ("foreign", "default-scheduler")):
                made = pod(name, profile, labels={"app": "a"})
                body = msgspec.json.encode(made)
                (await admin.request("POST", PODS, body=body, timeout=10)).check()

            async def in_force() -> bool:
                return (await status(binder, "foreign", conditions=[ASKED])).status == 422

            await until(in_force, 60)
            yield admin, binder
        finally:
            await admin.close()
            await binder.close()
    finally:
        await plane.stop()


async def patch(client: KubeClient, name: str, change: dict[str, Any]) -> Response:
    path, body = f"{PODS}/{name}/status", msgspec.json.encode(change)
    return await client.request("PATCH", path, body=body, content_type=MERGE, timeout=10)


async def status(client: KubeClient, name: str, **fields: Any) -> Response:
    return await patch(client, name, {"status": fields})


async def test_the_binder_may_ask_for_another_attempt_of_moorages_pods_only(
    clients: tuple[KubeClient, KubeClient],
) -> None:
    _, binder = clients
    (await status(binder, "ours", conditions=[ASKED])).check()
    (await status(binder, "ours", conditions=[{**ASKED, "reason": "Again"}])).check()
    refused = await status(binder, "foreign", conditions=[ASKED])
    assert b"the binder may write to pods of Moorage's profiles only" in refused.body


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": {"conditions": [OTHER]}}, b"no condition but moorage.io/RetryRequested"),
        ({"status": {"phase": "Failed"}}, b"nothing but conditions"),
        ({"status": {"nominatedNodeName": "n1"}}, b"nothing but conditions"),
        ({"status": {"podIPs": [{"ip": "10.0.0.1"}]}}, b"nothing but conditions"),
        ({"metadata": {"labels": {"app": "b"}}}, b"may not change metadata"),
        ({"metadata": {"annotations": {"a": "b"}}}, b"may not change metadata"),
        ({"metadata": {"finalizers": ["a.b/c"]}}, b"may not change metadata"),
    ],
)
async def test_the_binder_may_write_nothing_else(
    clients: tuple[KubeClient, KubeClient], change: dict[str, Any], message: bytes
) -> None:
    _, binder = clients
    refused = await patch(binder, "ours", change)
    assert (refused.status, message in refused.body) == (422, True), refused.body


async def test_others_are_not_checked(clients: tuple[KubeClient, KubeClient]) -> None:
    admin, _ = clients
    (await status(admin, "foreign", conditions=[OTHER])).check()
