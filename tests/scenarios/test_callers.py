"""What callers get on each HTTP port with certificates; docs/reference/http-ports.md has it."""

import asyncio
import os
import re
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from cli.certs.certificates import keep_certificates
from cli.decisions.explain import explained as ask
from cli.shared.gateway.options import GatewayOptions
from moorage.errors import ConfigurationError
from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.security import client_context
from tests.needs import needed
from tests.prometheus import scraping, wait_for_samples
from tests.scenarios.tenants import TENANTS, check_tenants, create_tenants
from tests.scenarios.world import World
from tools.docs.pages import blocks
from tools.manifests.rendering import installed, one
from tools.planes.embedded import ROOT, EmbeddedPlane
from tools.planes.moorage import Moorage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.embedded_alone]

ACCOUNTS = ("prometheus", "ann", "bob", "late")
"""The users whose tokens the API server knows: token-of-NAME."""

CALLERS = ("nobody", "scheduler", "operator", "metrics", "filter")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
METRICS = {
    "kind": "ClusterRole",
    "metadata": {"name": "moorage-metrics"},
    "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
}
"""What the chart has with bearerTokens.metrics, as no committed layout does."""

PAGE = ROOT / "docs" / "reference" / "http-ports.md"
ROW = re.compile(r"^\| (extender|admin), \d+ \| `(\w+) (/\S*)` \| (.*) \|$", re.M)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("certs")
    keep_certificates(root)
    return root


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedPlane:
    directory = tmp_path_factory.mktemp("callers")
    accounts = directory / "accounts.csv"
    accounts.write_text("\n".join(f"token-of-{name},{name},{name}" for name in ACCOUNTS))
    return EmbeddedPlane(directory, f"--token-auth-file={accounts}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def services(plane: EmbeddedPlane, folders: Path) -> AsyncIterator[Moorage]:
    async with World.started(plane, through_proxy=False, certificates=folders) as world:
        yield world.services


def rows() -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield port, method, path and what each caller gets, as the page has it."""
    for port, method, path, answers in ROW.findall(PAGE.read_text()):
        yield port, method, path, answers.split(" | ")


def context(folders: Path, caller: str) -> ssl.SSLContext:
    if caller == "nobody":
        return ssl.create_default_context(cadata=(folders / "ca" / "ca.crt").read_text())
    return client_context(read_certificate(folders / caller))


async def answer(folders: Path, caller: str, method: str, url: str, token: str = "") -> str:
    options: Any = {"ssl": context(folders, caller)}
    if token:
        options["headers"] = {"Authorization": f"Bearer {token}"}
    try:
        async with (
            aiohttp.ClientSession() as http,
            http.request(method, url, json={}, **options) as response,
        ):
            return str(response.status)
    except (aiohttp.ClientError, OSError):
        return "no TLS"


async def test_callers_get_what_the_page_has(services: Moorage, folders: Path) -> None:
    admins = [services.admin_of(name) for name in services.ports]
    ports = {"extender": [services.extender], "admin": admins}
    table = list(rows())
    assert {port for port, *_ in table} == set(ports)
    for port, method, path, expected in table:
        for url in ports[port]:
            found = [await answer(folders, caller, method, url + path) for caller in CALLERS]
            at_gateway = url in (services.extender, services.admin)
            if path.startswith("/decisions") and not at_gateway:
                continue
            assert found == expected, f"{method} {url}{path}"


def scrape_configs(services: Moorage, folder: Path) -> list[dict[str, Any]]:
    """Return the job that the page shows, once for each process, with their addresses here."""
    (page,) = (each.text for each in blocks("yaml") if each.page == PAGE)
    found = []
    for program in services.programs:
        kind = program.partition("-")[0]
        text = page.replace("filter", kind).replace("/etc/prometheus/moorage", str(folder))
        (job,) = yaml.safe_load(text)["scrape_configs"]
        assert job.pop("kubernetes_sd_configs")
        assert job.pop("relabel_configs")
        address = services.admin_of(program).removeprefix("https://")
        targets = {"targets": [address], "labels": {"process": program}}
        found.append({**job, "job_name": program, "static_configs": [targets]})
    return found


async def test_prometheus_scrapes_every_process_with_its_own_certificate(
    services: Moorage, folders: Path, tmp_path: Path
) -> None:
    def scrape() -> None:
        configs = scrape_configs(services, folders / "metrics")
        with scraping(tmp_path, configs) as prometheus:
            wait_for_samples(prometheus.address, "up == 1", 5)
            wait_for_samples(prometheus.address, "moorage_build_info", 5)

    await asyncio.to_thread(scrape)


async def grant(plane: EmbeddedPlane, role: str, user: str) -> None:
    """Bind a ClusterRole of the chart to one more user."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    bound = {
        "metadata": {"name": f"{role}-{user}"},
        "roleRef": reference,
        "subjects": [{"kind": "User", "name": user}],
    }
    shipped = [*installed("second-scheduler"), METRICS]
    rules = one(shipped, "ClusterRole", role)
    async with aiohttp.ClientSession() as http:
        for kind, body in (("clusterroles", rules), ("clusterrolebindings", bound)):
            async with http.post(f"{plane.url}{RBAC}/{kind}", json=body) as response:
                assert response.status in (201, 409), await response.text()


async def let_get_pods(plane: EmbeddedPlane, user: str, namespace: str) -> None:
    """Let a user get the pods of one namespace."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pods"}
    role = {"metadata": {"name": "pods"}, "rules": rules}
    bound = {
        "metadata": {"name": f"pods-{user}"},
        "roleRef": reference,
        "subjects": [{"kind": "User", "name": user}],
    }
    async with aiohttp.ClientSession() as http:
        await http.post(f"{plane.url}/api/v1/namespaces", json={"metadata": {"name": namespace}})
        for kind, body in (("roles", role), ("rolebindings", bound)):
            url = f"{plane.url}{RBAC}/namespaces/{namespace}/{kind}"
            async with http.post(url, json=body) as response:
                assert response.status in (201, 409), await response.text()


async def test_the_api_server_decides_about_bearer_tokens(
    services: Moorage, folders: Path, plane: EmbeddedPlane
) -> None:
    await grant(plane, "moorage-metrics", "prometheus")
    for user, namespace in (("ann", "default"), ("bob", "shop")):
        await grant(plane, "moorage-decisions", user)
        await let_get_pods(plane, user, namespace)

    async def answers(token: str, path: str) -> list[str]:
        return [await answer(folders, "nobody", "GET", url + path, token) for url in asking]

    gateway, binder = services.admin, services.admin_of("binder")
    asking = [gateway, binder]
    assert await answers("token-of-prometheus", "/metrics") == ["200", "200"]
    assert await answers("token-of-prometheus", "/decisions/default/web") == ["403", "403"]
    assert await answers("token-of-ann", "/decisions/default/web") == ["404", "404"]
    assert await answers("token-of-bob", "/decisions/default/web") == ["403", "404"]
    assert await answers("token-of-bob", "/decisions/shop/web") == ["404", "404"]
    assert await answers("token-of-late", "/metrics") == ["403", "403"]
    assert await answers("token-of-nobody", "/metrics") == ["401", "401"]
    await plane.stop()
    try:
        assert await answers("another", "/metrics") == ["503", "503"]
        assert await answers("another", "/livez") == ["200", "200"]
    finally:
        await plane.start()
    asking = [services.admin_of("filter"), services.admin_of("scorer-1")]
    assert await answers("token-of-prometheus", "/metrics") == ["401", "401"]


async def test_tenants_see_their_own_pods_alone(
    services: Moorage, folders: Path, plane: EmbeddedPlane
) -> None:
    users = dict(zip(TENANTS, ("ann", "bob"), strict=True))
    async with aiohttp.ClientSession() as http:

        async def create(path: str, body: Any) -> None:
            async with http.post(plane.url + path, json=body) as response:
                assert response.status in (201, 409), await response.text()

        for user in users.values():
            await grant(plane, "moorage-decisions", user)
        subjects = {tenant: {"kind": "User", "name": user} for tenant, user in users.items()}
        await create_tenants(create, subjects)
    tokens = {tenant: f"token-of-{user}" for tenant, user in users.items()}
    await check_tenants(services, folders, tokens)


def kubeconfig(plane: EmbeddedPlane, file: Path, token: str) -> Path:
    """Write a kubeconfig whose user has a token, or none if it is ""."""
    config = yaml.safe_load(plane.kubeconfig("admin").read_text())
    config["users"][0]["user"] = {"token": token} if token else {}
    file.write_text(yaml.safe_dump(config))
    return file


async def kubectl_explain(kubeconfig: Path, *arguments: str) -> str:
    """Run `kubectl moorage explain default/web`; return what it writes."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *("kubectl", "moorage", "explain", "default/web", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig)},
    )
    out, _ = await process.communicate()
    return " ".join(out.decode().split())


REASON = "its schedulerName is default-scheduler, which no profile serves"
"""Why the pod waits, which only the gateway knows."""


async def test_people_with_rights_ask_with_their_token_why_a_pod_waits(
    services: Moorage, folders: Path, plane: EmbeddedPlane, tmp_path: Path
) -> None:
    await grant(plane, "moorage-decisions", "ann")
    await let_get_pods(plane, "ann", "default")
    containers = [{"name": "main", "image": "web:1"}]
    pod = {"metadata": {"name": "web"}, "spec": {"containers": containers}}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{plane.url}/api/v1/namespaces/default/pods", json=pod) as response,
    ):
        assert response.status == 201, await response.text()

    async def explained(token: str = "", **options: Any) -> str:
        config = kubeconfig(plane, tmp_path / "kubeconfig", token)
        given = GatewayOptions(**{"admin": services.admin, "kubeconfig": config, **options})
        return (await ask("default/web", "", given)).headline

    believed: dict[str, Any] = {"ca_file": folders / "ca" / "ca.crt"}
    plain = services.admin.replace("https", "http")
    assert REASON in await explained("token-of-ann", **believed)
    assert REASON in await explained(tls=folders / "operator")
    assert "ClusterRole with this right" in await explained("token-of-late", **believed)
    assert "token of the kubeconfig's user is not known" in await explained("unknown", **believed)
    assert "the kubeconfig's user has no token: give --tls DIR" in await explained(**believed)
    assert "give --tls DIR" in await explained("token-of-ann")
    assert "https:// if the gateway has certificates" in await explained(admin=plain)
    with pytest.raises(ConfigurationError, match="begins with https://"):
        await explained(admin=plain, **believed)
    needed("kubectl")
    config = kubeconfig(plane, tmp_path / "kubeconfig", "token-of-ann")
    options = (f"--admin={services.admin}", f"--ca-file={believed['ca_file']}")
    assert REASON in await kubectl_explain(config, *options)
