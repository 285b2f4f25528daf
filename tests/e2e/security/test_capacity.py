"""`moorage capacity` may touch its placeholders and its marks on nodes, and nothing else."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import pytest_asyncio

from cli.capacity.placeholder import placeholder_name
from moorage_host.kube import KubeClient, Response, connect
from tests.cli.support import moorage
from tests.scenarios.karpenter import definition
from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod
from tools.waiting import until

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
MARK = {"moorage.io/placeholder": "karpenter"}
MINE = placeholder_name("3f2c1a9e-0000-4000-8000-1234567890ab")
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


class Clients(NamedTuple):
    admin: KubeClient
    capacity: KubeClient
    kubeconfig: Path


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clients(bare: World) -> AsyncIterator[Clients]:
    """The admin and the controller, once the policy is in force; a node and a pod exist."""
    kubeconfig = bare.plane.kubeconfig("capacity")
    capacity = await connect(kubeconfig)
    try:
        await bare.create(node("n1", labels={"a": "b"}), pod("foreign"))

        async def in_force() -> bool:
            return (await send(capacity, "DELETE", f"{PODS}/foreign?dryRun=All")).status == 422

        await until(in_force, 60)
        yield Clients(bare.client, capacity, kubeconfig)
    finally:
        await capacity.close()
        await bare.empty()


async def send(client: KubeClient, verb: str, path: str, body: Object | None = None) -> Response:
    kind = "application/strategic-merge-patch+json" if verb == "PATCH" else "application/json"
    path, _, question = path.partition("?")
    return await client.request(
        verb,
        path,
        query=dict([question.split("=")]) if question else None,
        body=None if body is None else msgspec.json.encode(body),
        content_type=kind,
        timeout=10,
    )


def placeholder(name: str, scheduler: str = "moorage-placeholder", **more: Any) -> Object:
    return pod(name, scheduler, **{"labels": MARK, **more})


async def test_it_makes_placeholders_and_marks_nodes(clients: Clients) -> None:
    client, mine = clients.capacity, f"{PODS}/{MINE}"
    (await send(client, "POST", PODS, placeholder(MINE))).check()
    status = {"status": {"conditions": [UNSCHEDULABLE]}}
    (await send(client, "PATCH", f"{mine}/status", status)).check()
    (await send(client, "DELETE", mine)).check()
    for value in ("true", None):
        metadata = {
            "labels": {"moorage.io/existing": value},
            "annotations": {"moorage.io/asked-for": value, "karpenter.sh/do-not-disrupt": value},
        }
        (await send(client, "PATCH", f"{NODES}/n1", {"metadata": metadata})).check()


PLACEHOLDERS_ONLY, ITS_OWN = b"placeholders only", b"its own only"


@pytest.mark.parametrize(
    ("verb", "path", "body", "message"),
    [
        ("POST", PODS, pod(MINE, labels=MARK), PLACEHOLDERS_ONLY),
        ("POST", PODS, placeholder(MINE, labels={"a": "b"}), PLACEHOLDERS_ONLY),
        ("POST", PODS, placeholder(MINE, spec={"nodeName": "n1"}), PLACEHOLDERS_ONLY),
        ("POST", PODS, placeholder("web"), PLACEHOLDERS_ONLY),
        ("DELETE", f"{PODS}/foreign", None, PLACEHOLDERS_ONLY),
        (
            "PATCH",
            f"{PODS}/foreign/status",
            {"status": {"conditions": [UNSCHEDULABLE]}},
            PLACEHOLDERS_ONLY,
        ),
        ("PATCH", f"{NODES}/n1", {"metadata": {"labels": {"a": "c"}}}, ITS_OWN),
        ("PATCH", f"{NODES}/n1", {"metadata": {"labels": {"a": None}}}, ITS_OWN),
        ("PATCH", f"{NODES}/n1", {"metadata": {"labels": {"new": "c"}}}, ITS_OWN),
        ("PATCH", f"{NODES}/n1", {"metadata": {"annotations": {"new": "c"}}}, ITS_OWN),
        ("PATCH", f"{NODES}/n1", {"spec": {"unschedulable": True}}, b"labels and annotations only"),
        (
            "PATCH",
            f"{NODES}/n1",
            {"metadata": {"finalizers": ["a.b/c"]}},
            b"labels and annotations only",
        ),
    ],
)
async def test_anything_else_is_refused(
    clients: Clients, verb: str, path: str, body: Object | None, message: bytes
) -> None:
    refused = await send(clients.capacity, verb, path, body)
    assert (refused.status, message in refused.body) == (422, True), refused.body


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("DELETE", f"{NODES}/n1"),
        ("DELETE", PODS),
        ("PATCH", f"{NODES}/n1/status"),
        ("PATCH", f"{PODS}/foreign"),
        ("POST", f"{PODS}/foreign/binding"),
        ("GET", "/api/v1/secrets"),
        ("POST", "/apis/karpenter.sh/v1/nodeclaims"),
    ],
)
async def test_it_has_no_right_to(clients: Clients, verb: str, path: str) -> None:
    assert (await send(clients.capacity, verb, path, {})).status == 403


@pytest.mark.parametrize("served", [(), ("v1beta1",)])
async def test_without_karpenter_or_with_another_version_it_says_so(
    clients: Clients, served: tuple[str, ...], tmp_path: Path
) -> None:
    for version in served:
        (await send(clients.admin, "POST", DEFINITIONS, definition("NodePool", version))).check()

        async def is_served(version: str = version) -> bool:
            path = f"/apis/karpenter.sh/{version}/nodepools"
            return (await send(clients.admin, "GET", path)).ok

        await until(is_served, 60)
    options = f"--kubeconfig={clients.kubeconfig}", "--admin=http://127.0.0.1:1"
    problem = f"serves karpenter.sh/{served[0]}, not v1" if served else "not serve karpenter.sh"
    async with moorage(tmp_path, "capacity", *options) as command:
        await until(lambda: problem in command.stderr.read_text())
        command.signal(signal.SIGTERM)
        assert (await command.ended())[0] == 0
