"""The stand-in's HTTP server: health, what was decided about each pod, and another try for all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from moorage_host.process.admin import admin_server
from sandbox.scheduler.scheduler import Scheduler

HOST = "127.0.0.1"


@asynccontextmanager
async def serving_decisions(scheduler: Scheduler, port: int | None) -> AsyncIterator[None]:
    """Serve `/decisions/NAMESPACE/POD` and `/retry` for as long as the block lasts.

    Nothing without a port.

    Raises:
        ConfigurationError: The port cannot be listened on.
    """
    if port is None:
        yield
        return

    async def show(request: web.Request) -> web.Response:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        decision = scheduler.decisions.get(namespace, pod)
        if decision is None:
            message = f"there is no decision about {namespace}/{pod}"
            return web.json_response({"error": message}, status=404)
        return web.Response(body=msgspec.json.encode(decision), content_type="application/json")

    async def retry(_: web.Request) -> web.Response:
        return web.json_response({"pods": scheduler.retry()})

    routes = [web.get("/decisions/{namespace}/{pod}", show), web.post("/retry", retry)]
    async with admin_server(HOST, port, checks={}, routes=routes):
        yield
