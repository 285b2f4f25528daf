"""Serves what is known about shadows on the admin port."""

import msgspec
from aiohttp import web

from gateway.shadow.shadow import Shadows

PATH = "/shadow"


def shadow_route(shadows: Shadows) -> web.RouteDef:
    """Return the route of `GET /shadow`."""

    async def answer(_: web.Request) -> web.Response:
        content = {"profiles": shadows.reports()}
        body = msgspec.json.encode(content) + b"\n"
        return web.Response(body=body, content_type="application/json")

    return web.get(PATH, answer)
