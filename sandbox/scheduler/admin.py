"""The stand-in's HTTP server: health, what was decided about each pod, and another try for all."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from moorage_host.process.admin import admin_server
from moorage_host.process.lifecycle import AdminSettings
from sandbox.scheduler.cycle.decision import Decisions

HOST = "127.0.0.1"


@asynccontextmanager
async def serving_decisions(
    decisions: Decisions, retry: Callable[[], int], port: int | None
) -> AsyncIterator[None]:
    """Serve `/decisions/NAMESPACE/POD` and `/retry` for as long as the block lasts.

    Args:
        decisions: What is served.
        retry: Has all pending pods tried again; returns how many there are.
        port: The port; without one nothing is served.

    Raises:
        ConfigurationError: The port cannot be listened on.
    """
    if port is None:
        yield
        return

    async def show(request: web.Request) -> web.Response:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        decision = decisions.get(namespace, pod)
        if decision is None:
            message = f"there is no decision about {namespace}/{pod}"
            return web.json_response({"error": message}, status=404)
        return web.Response(body=msgspec.json.encode(decision), content_type="application/json")

    async def try_again(_: web.Request) -> web.Response:
        return web.json_response({"pods": retry()})

    routes = [web.get("/decisions/{namespace}/{pod}", show), web.post("/retry", try_again)]
    settings = AdminSettings(admin_host=HOST, admin_port=port)
    async with admin_server(settings, checks={}, routes=routes):
        yield
