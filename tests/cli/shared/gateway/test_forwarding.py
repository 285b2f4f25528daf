"""How commands get to the gateway's admin port through an API server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from cli.shared.gateway.client import connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from cli.shared.gateway.pods import is_secured
from moorage.errors import ConfigurationError
from sandbox.apiserver.server import kubeconfig
from tools.planes.kubelet import HOST, forward

LARGE = "x" * 3_000_000
PODS = "/api/v1/namespaces/moorage/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/moorage/leases"


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[int]:
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def gateway() -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"path": request.path, "query": dict(request.query)})

    async def large(_: web.Request) -> web.Response:
        return web.json_response(LARGE)

    app = web.Application()
    app.router.add_get("/decisions/a/b", answer)
    app.router.add_get("/large", large)
    return app


def pod(
    name: str, port: int, *, ready: bool = False, program: str = "gateway"
) -> dict[str, object]:
    ports = [{"name": "admin", "containerPort": port}]
    container = {"name": "moorage", "args": [program], "ports": ports}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {
        "metadata": {"namespace": "moorage", "name": name},
        "spec": {"containers": [container]},
        "status": {"phase": "Running", "conditions": conditions},
    }


@asynccontextmanager
async def cluster(
    directory: Path, *pods: dict[str, object], holder: str = ""
) -> AsyncIterator[GatewayOptions]:
    """Serve as much of an API server as is needed; give the options that lead there."""

    async def listed(_: web.Request) -> web.Response:
        return web.json_response({"items": pods})

    async def lease(_: web.Request) -> web.Response:
        return web.json_response(
            {"spec": {"holderIdentity": holder}}, status=200 if holder else 403
        )

    app = web.Application()
    app.router.add_get(PODS, listed)
    app.router.add_get(f"{LEASE}/moorage-gateway", lease)
    app.router.add_get(f"{PODS}/forbidden/portforward", lease)
    app.router.add_get(f"{PODS}/{{pod}}/portforward", forward)
    async with serving(app) as port:
        file = directory / "kubeconfig"
        config = kubeconfig(f"http://{HOST}:{port}")
        file.write_text(json.dumps(config))
        yield GatewayOptions(kubeconfig=file)


async def test_requests_go_to_the_gateway_and_back(tmp_path: Path) -> None:
    async with serving(gateway()) as port:
        pods = pod("filter-1", 1, program="filter"), pod("gateway-1", port)
        async with cluster(tmp_path, *pods) as options, connected(options) as found:
            answer = await found.get("/decisions/a/b", {"node": "n 1"})
            assert answer == {"path": "/decisions/a/b", "query": {"node": "n 1"}}
            many = await asyncio.gather(*(found.get("/large") for _ in range(8)))
            assert all(each == LARGE for each in many)
            with pytest.raises(GatewayError, match="answers 404") as error:
                await found.get("/nothing")
            assert error.value.status == 404


async def test_the_gateway_that_decides_is_asked(tmp_path: Path) -> None:
    async with serving(gateway()) as port:
        first, second = pod("gateway-1", 1), pod("gateway-2", port)
        async with (
            cluster(tmp_path, first, second, holder="gateway-2_6e05") as options,
            connected(options) as found,
        ):
            await found.get("/decisions/a/b")
        # Without the right to read the Lease: the one that is ready.
        ready = pod("gateway-2", port, ready=True)
        async with cluster(tmp_path, first, ready) as options, connected(options) as found:
            await found.get("/decisions/a/b")


def test_any_probe_shows_whether_the_port_has_certificates() -> None:
    probe = {"httpGet": {"path": "/livez", "port": "admin", "scheme": "HTTPS"}}
    # A gateway beside kube-scheduler must not make their pod ready or not.
    assert is_secured({"livenessProbe": probe})
    assert not is_secured({"livenessProbe": {"httpGet": {"path": "/livez"}}})


async def test_what_is_missing_is_named(tmp_path: Path) -> None:
    async with cluster(tmp_path) as options:
        with pytest.raises(GatewayError, match=r"no gateway runs in namespace moorage: give"):
            async with connected(options):
                pass
    async with cluster(tmp_path, pod("gateway-1", 1)) as options, connected(options) as found:
        with pytest.raises(GatewayError, match="connection refused"):
            await found.get("/decisions/a/b")
    async with cluster(tmp_path, pod("forbidden", 1)) as options, connected(options) as found:
        with pytest.raises(GatewayError, match=r"cannot forward .* get and create on pods/portfo"):
            await found.get("/decisions/a/b")
    wrong = GatewayOptions(kubeconfig=options.kubeconfig, gateway="a/b/c")
    with pytest.raises(ConfigurationError, match=r"neither a namespace nor NAMESPACE/POD"):
        async with connected(wrong):
            pass
