"""A real kube-scheduler that calls the gateway with `enableHTTPS` and `tlsConfig`."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from cli.certs.certificates import Issued, keep_certificates
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.security import client_context
from tests.scenarios.world import World
from tools.inprocess.certificates import DAY, authority, write_folder
from tools.planes.objects import node, pod

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHER, UNKNOWN = authority("the next authority"), authority("an unknown authority")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folders that `moorage certs` writes; the next authority is believed too."""
    root = tmp_path_factory.mktemp("certs")
    keep_certificates(root)
    for name in ("gateway", "filter", "scorer", "binder", "operator"):
        with (root / name / "ca.crt").open("ab") as file:
            file.write(OTHER.certificate)
    return root


@pytest.fixture(scope="module")
def ours(folders: Path) -> Issued:
    """Return the authority of these folders."""
    ca = folders / "ca"
    return Issued(certificate=(ca / "ca.crt").read_bytes(), key=(ca / "ca.key").read_bytes())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(bare: World, folders: Path) -> AsyncIterator[World]:
    """A control plane with nodes, and Moorage with a certificate for each process."""
    async with bare.secured(folders) as world:
        await world.create(node("n1"), node("n2"))
        yield world


def tls(folder: Path, **changed: str) -> dict[str, Any]:
    """Return the fields of the extender's entry."""
    files = {"certFile": "tls.crt", "keyFile": "tls.key", "caFile": "ca.crt"}
    named = {name: str(folder / file) for name, file in files.items()}
    config = {"serverName": "moorage-gateway", **named, **changed}
    return {"enableHTTPS": True, "tlsConfig": config}


async def test_pods_are_bound(world: World, folders: Path) -> None:
    async with world.scheduler(**tls(folders / "scheduler")):
        await world.create(pod("p1"))
        await world.bound("p1")


async def test_other_certificates_are_refused(
    world: World, folders: Path, ours: Issued, tmp_path: Path
) -> None:
    both = ours.certificate + UNKNOWN.certificate
    name, past = "moorage-scheduler", timedelta(days=-2)
    cases = {
        "authority": (write_folder(tmp_path / "a", UNKNOWN, name, believed=both), "/filter"),
        "expired": (write_folder(tmp_path / "e", ours, name, begin=past, life=DAY), "/filter"),
        "name": (folders / "operator", "code 403"),
    }
    for case, (folder, problem) in cases.items():
        async with world.scheduler(name=f"scheduler-{case}", **tls(folder)):
            await world.create(pod(f"with-{case}"))
            assert problem in await world.event(f"with-{case}", "filter")
    places = await world.places()
    assert not any(places[f"with-{case}"] for case in cases)
    # With TLS 1.3 kube-scheduler learns only that the connection ended; the gateway logs why.
    log = world.services.programs["gateway"].log.read_text()
    assert "certificate verify failed" in log


async def test_another_gateway_is_refused(world: World, folders: Path) -> None:
    entry = tls(folders / "scheduler", serverName="moorage-other")
    async with world.scheduler(name="scheduler-server", **entry):
        await world.create(pod("with-server"))
        assert "moorage-other" in await world.event("with-server", "x509")


async def test_kube_scheduler_rereads_its_certificate_and_not_its_authorities(
    world: World, folders: Path, ours: Issued, tmp_path: Path
) -> None:
    gateway = world.services.programs["gateway"]
    believed = ours.certificate + OTHER.certificate
    mine = write_folder(tmp_path / "mine", ours, "moorage-scheduler")
    async with world.scheduler(name="rotating", **tls(mine)):
        await world.create(pod("r1"))
        await world.bound("r1")
        write_folder(mine, ours, "moorage-operator")
        await gateway.stop()
        await gateway.start()  # its connections are new from here on
        await world.create(pod("r2"))
        await world.event("r2", "code 403")
        write_folder(mine, ours, "moorage-scheduler", believed=believed)
        await gateway.stop()
        await gateway.start()
        await world.bound("r2", patience=120)
        names = read_certificate(folders / "gateway").names
        write_folder(folders / "gateway", OTHER, *names, "127.0.0.1", believed=believed)
        await gateway.stop()
        await world.create(pod("r3"))
        await gateway.start()
        await world.event("r3", "x509: certificate signed by unknown authority")


async def test_bearer_tokens_are_checked_by_the_api_server(world: World, folders: Path) -> None:
    prometheus = await token(world, "prometheus")
    await world.request("POST", RBAC, binding("prometheus"))
    somebody = await token(world, "somebody")
    url = f"{world.services.admin}/metrics"
    for bearer, status in ((prometheus, 200), (somebody, 403), ("nonsense", 401)):
        headers = {"Authorization": f"Bearer {bearer}"}
        async with aiohttp.ClientSession(headers=headers) as http, http.get(url, ssl=False) as got:
            assert got.status == status, await got.text()
    operator = client_context(read_certificate(folders / "operator"))
    name = "moorage-gateway"
    async with aiohttp.ClientSession() as http:
        async with http.get(url, ssl=operator, server_hostname=name) as got:
            assert got.status == 200
        async with http.get(f"{world.services.admin}/livez", ssl=False) as got:
            assert got.status == 200


RBAC = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def binding(account: str) -> dict[str, Any]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": account},
        "roleRef": {**role, "name": "moorage-metrics"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    }


async def token(world: World, account: str) -> str:
    """Make a service account; return a token of it."""
    path = "/api/v1/namespaces/default/serviceaccounts"
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}
    (await world.request("POST", path, body)).check()
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await world.request("POST", f"{path}/{account}/token", asked)
    made: str = msgspec.json.decode(answer.check().body)["status"]["token"]
    return made
