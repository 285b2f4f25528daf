"""Our Kubernetes client on a real API server: by token, by client certificate, and refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage_host.kube import KubeClient, KubeStatusError, Response, connect
from tests.scenarios.world import World
from tools.planes.real import Authority, RealPlane, who

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

NODES = "/api/v1/nodes"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@asynccontextmanager
async def client(kubeconfig: Path) -> AsyncIterator[KubeClient]:
    connected = await connect(kubeconfig)
    try:
        yield connected
    finally:
        await connected.close()


async def list_nodes(kubeconfig: Path) -> Response:
    async with client(kubeconfig) as connected:
        return await connected.request("GET", NODES, timeout=10)


async def whoami(kubeconfig: Path) -> Any:
    """Return what the API server knows about who asks."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    body = msgspec.json.encode(review)
    async with client(kubeconfig) as connected:
        answer = await connected.request("POST", REVIEWS, body=body, timeout=10)
    return msgspec.json.decode(answer.check().body)["status"]["userInfo"]


async def test_a_certificate_gives_the_rights_of_its_user_and_no_more(
    bare: World, tmp_path: Path
) -> None:
    plane, file = bare.plane, tmp_path / "kubeconfig"
    assert isinstance(plane, RealPlane)
    plane.write_kubeconfig(file, plane.authority.sign("somebody", "somebody").user)
    assert (await whoami(file))["username"] == "somebody"
    answer = await list_nodes(file)
    with pytest.raises(KubeStatusError, match=r'403.*User "somebody" cannot list resource "nodes"'):
        answer.check()


async def test_watches_work_with_a_certificate(bare: World) -> None:
    query = {"watch": "true", "timeoutSeconds": "1", "sendInitialEvents": "true"}
    query |= {"resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with client(bare.plane.kubeconfig("admin")) as connected:
        lines = [line async for line in connected.stream_lines(NODES, query=query, silence=10)]
    assert msgspec.json.decode(lines[0])["type"] == "BOOKMARK"


@pytest.mark.parametrize("kind", ["certificate of another authority", "token nobody has"])
async def test_others_are_refused(bare: World, tmp_path: Path, kind: str) -> None:
    assert isinstance(bare.plane, RealPlane)
    stranger = Authority(tmp_path).sign("admin", *who("admin"))
    file = tmp_path / "kubeconfig"
    bare.plane.write_kubeconfig(file, stranger.user if "certificate" in kind else {"token": "none"})
    answer = await list_nodes(file)
    with pytest.raises(KubeStatusError, match="401 Unauthorized"):
        answer.check()
