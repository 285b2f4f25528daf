"""Two tenants of a cluster, and what each sees of the other's pods on the gateway's admin port."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from moorage_host.tls.certificate import read_certificate
from moorage_host.tls.security import client_context
from tools.planes.embedded import ROOT, Object
from tools.planes.moorage import Moorage
from tools.planes.objects import node, pod

PAGE = ROOT / "docs" / "reference" / "http-ports.md"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = {"apiGroup": "rbac.authorization.k8s.io"}

TENANTS = ("blue", "green")
"""The namespaces; pods have the name of theirs in their own."""

NAMES_NO_POD = {
    "GET /shadow",
    "GET /groups",
    "GET /decisions/rejected",
    "GET /decisions/{namespace}/{pod}/{id}/nodes",
}
"""No shadow runs, no group is there, nobody is rejected (who may read what of that has a test of
its own); the last has the nodes of the pod in the path."""

SEARCHED = {"GET /decisions/pending": "?search=of"}
"""Nobody waits: a search finds those that run."""

_ROW = re.compile(r"^\| (`(?:GET|POST) /.*?) \| (.*?) \| .*\|$", re.M)
_PATH = re.compile(r"`(GET|POST) (/\S*)`")

Create = Callable[[str, Object], Awaitable[None]]
"""Creates an object in a collection, unless it exists."""


def table() -> Mapping[str, str]:
    """Return which right to pods each request needs, as the page has it: "GET /path" -> right."""
    text = PAGE.read_text().partition("## Bearer tokens")[2].partition("\n## ")[0]
    return {
        f"{method} {path}": right
        for requests, right in _ROW.findall(text)
        for method, path in _PATH.findall(requests)
    }


async def create_tenants(create: Create, subjects: Mapping[str, Object]) -> None:
    """Give each tenant a namespace, the right to get its pods, a pod on the node, and the paths."""
    await create("/api/v1/nodes", node("n1"))
    for tenant in TENANTS:
        await create("/api/v1/namespaces", _named(tenant))
        here = f"{RBAC}/namespaces/{tenant}"
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
        await create(f"{here}/roles", {**_named("pods"), "rules": rules})
        await create(f"{here}/rolebindings", _binding("Role", "pods", subjects[tenant]))
        paths = _binding("ClusterRole", "moorage-decisions", subjects[tenant])
        paths["metadata"]["name"] = f"paths-of-{tenant}"
        await create(f"{RBAC}/clusterrolebindings", paths)
        await create(f"/api/v1/namespaces/{tenant}/pods", _pod_of(tenant, "running", "n1"))


async def check_tenants(services: Moorage, folders: Path, tokens: Mapping[str, str]) -> None:
    """Decide on a pod of each tenant; check that each sees their own pods everywhere, and no other.

    Each path of the gateway must be in the page's table.
    """
    scheduler = client_context(read_certificate(folders / "scheduler"))
    operator = client_context(read_certificate(folders / "operator"))
    async with aiohttp.ClientSession() as http:

        async def decide(tenant: str) -> None:
            call = {"Pod": _pod_of(tenant, "waiting"), "NodeNames": ["n1", "n2"]}
            url = f"{services.extender}/filter"
            async with http.post(url, json=call, ssl=scheduler) as answer:
                assert answer.status == 200, await answer.text()

        async def ask(request: str, token: str = "") -> tuple[int, str]:
            method, path = request.split(" ")
            options: dict[str, Any] = {"ssl": operator}
            if token:
                options = {"ssl": False, "headers": {"Authorization": f"Bearer {token}"}}
            async with http.request(method, services.admin + path, **options) as answer:
                return answer.status, await answer.text()

        async def there() -> bool:
            _, node = await ask("GET /nodes/n1")
            return all(f"running-of-{tenant}" in node for tenant in TENANTS)

        async with asyncio.timeout(60):
            while (await ask("GET /readyz"))[0] != 200:  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.05)
            while not await there():  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.05)
        for tenant in TENANTS:
            await decide(tenant)
        _, found = await ask("GET /no-such-path")
        known = {request.split(" ")[1] for request in table()}
        differing = known ^ set(json.loads(found)["paths"])
        assert not differing, f"either {PAGE.name} or the gateway lacks {sorted(differing)}"
        for tenant, other in (TENANTS, TENANTS[::-1]):
            own = await _id_of(ask, tenant, tokens[tenant])
            others = await _id_of(ask, other, "")
            for request, right in table().items():
                if request.endswith("/stream"):
                    continue
                if "all namespaces" in right:
                    asked = _filled(request, tenant, own)
                    assert (await ask(asked, tokens[tenant]))[0] == 403, request
                    continue
                asked = _filled(request, tenant, own) + SEARCHED.get(request, "")
                status, text = await ask(asked, tokens[tenant])
                assert status == 200, (request, text[:500])
                if right.startswith("`get pods`") and request not in NAMES_NO_POD:
                    assert f"of-{tenant}" in text, request
                assert f"of-{other}" not in text, request
                if "{namespace}" in request:
                    status, text = await ask(_filled(request, other, others), tokens[tenant])
                    assert (status, "may not get pods" in text) == (403, True), (request, text)
            status, _ = await ask(f"GET /decisions?namespace={other}", tokens[tenant])
            assert status == 403
        await _check_stream(services, http, tokens, decide)


async def _check_stream(
    services: Moorage,
    http: aiohttp.ClientSession,
    tokens: Mapping[str, str],
    decide: Callable[[str], Awaitable[None]],
) -> None:
    """Check that a stream has the tenant's own decisions alone."""
    first, second = TENANTS
    headers = {"Authorization": f"Bearer {tokens[second]}"}
    url = f"{services.admin}/decisions/stream"
    async with asyncio.timeout(60), http.get(url, ssl=False, headers=headers) as stream:
        assert stream.status == 200
        await decide(first)
        await decide(second)
        text = ""
        while f"of-{second}" not in text:
            text += (await stream.content.readany()).decode()
    assert f"of-{first}" not in text


async def _id_of(ask: Callable[..., Awaitable[tuple[int, str]]], tenant: str, token: str) -> str:
    status, text = await ask(f"GET /decisions?namespace={tenant}", token)
    assert status == 200, text
    found: str = json.loads(text)["items"][0]["id"]
    return found


def _filled(request: str, tenant: str, decision: str) -> str:
    values = {"namespace": tenant, "pod": f"waiting-of-{tenant}", "id": decision}
    values |= {"name": "n1", "file": ""}
    return re.sub(r"{(\w+)}", lambda match: values[match[1]], request)


def _pod_of(tenant: str, name: str, on: str = "") -> Object:
    made = pod(f"{name}-of-{tenant}", spec={"nodeName": on} if on else None)
    made["metadata"] |= {"namespace": tenant}
    if not on:
        made["metadata"]["uid"] = f"uid-{tenant}"
    return made


def _named(name: str) -> Object:
    return {"metadata": {"name": name}}


def _binding(kind: str, role: str, subject: Object) -> Object:
    reference = {**GROUP, "kind": kind, "name": role}
    return {**_named(role), "roleRef": reference, "subjects": [subject]}
