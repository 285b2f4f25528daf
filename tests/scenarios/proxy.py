"""A proxy between the binder and the API server that can hold requests and lose answers."""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

HOP_HEADERS = frozenset(
    {"host", "connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding"}
)


class Proxy:
    """Passes requests on as they are, credentials too, but for *routes* of its own.

    Attributes:
        before: Requests wait for this before they are passed on.
        after: Answers wait for this before they are passed back.
        waiting: Requests that wait for `before` now.
        answered: Requests whose answer waits for `after` now.
        binding_seconds: How long each Binding is held before it is passed on.
        held: Bindings that are held now.
        lose_bindings: Bindings are carried out, but their answers get lost with the connection.
        binds: Bindings passed on so far, as (pod, status).
    """

    def __init__(
        self, directory: Path, kubeconfig: Path, routes: Sequence[web.RouteDef] = ()
    ) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._upstream: str = cluster["server"]
        self._ca: str | None = cluster.pop("certificate-authority", None)
        self._config = config
        self._directory = directory
        self._routes = routes
        self.before = asyncio.Event()
        self.after = asyncio.Event()
        self.waiting = 0
        self.answered = 0
        self.held = 0
        self.lose_bindings = False
        self.binding_seconds = 0.0
        self.binds: list[tuple[str, int]] = []
        self.reset()

    def reset(self) -> None:
        """Let everything pass."""
        self.binding_seconds = 0.0
        self.before.set()
        self.after.set()
        self.lose_bindings = False
        self.binds.clear()

    async def start(self, stack: AsyncExitStack) -> Path:
        """Serve until *stack* is left; return the kubeconfig that leads through here."""
        tls = ssl.create_default_context(cafile=self._ca) if self._ca else True
        self._session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=tls))
        )
        app = web.Application(client_max_size=1 << 24)
        app.add_routes([*self._routes, web.route("*", "/{path:.*}", self._pass)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self._config["clusters"][0]["cluster"]["server"] = f"http://{host}:{port}"
        file = self._directory / "through-proxy.kubeconfig"
        file.write_text(yaml.safe_dump(self._config))
        return file

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.waiting += 1
        try:
            await self.before.wait()
        finally:
            self.waiting -= 1
        if request.path.endswith("/binding"):
            self.held += 1
            try:
                await asyncio.sleep(self.binding_seconds)
            finally:
                self.held -= 1
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_HEADERS}
        url = self._upstream + request.raw_path
        async with self._session.request(
            request.method, url, data=body, headers=headers
        ) as response:
            answer = await response.read()
        if request.path.endswith("/binding"):
            self.binds.append((request.path.split("/")[-2], response.status))
            if self.lose_bindings and request.transport:
                request.transport.abort()
        self.answered += 1
        try:
            await self.after.wait()
        finally:
            self.answered -= 1
        return web.Response(status=response.status, body=answer, content_type=response.content_type)
