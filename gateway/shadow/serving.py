"""Serves what is known about shadows on the admin port."""

import msgspec
from aiohttp import web
from msgspec.structs import replace

from gateway.shadow.records import ShadowReport
from gateway.shadow.shadow import Shadows
from moorage_host.http.reading import ALL_NAMESPACES, may_read, readable

PATH = "/shadow"


def shadow_route(shadows: Shadows) -> web.RouteDef:
    """Return the route of `GET /shadow`."""

    async def answer(request: web.Request) -> web.Response:
        reports = shadows.reports()
        if not await may_read(request, ALL_NAMESPACES):
            named = (each.namespace for report in reports for each in report.disagreements)
            visible = await readable(request, named)
            reports = [_restricted(report, visible) for report in reports]
        body = msgspec.json.encode({"profiles": reports}) + b"\n"
        return web.Response(body=body, content_type="application/json")

    return web.get(PATH, answer)


def _restricted(report: ShadowReport, namespaces: frozenset[str]) -> ShadowReport:
    """Return what may be shown to those who see these namespaces; a failure may be of any pod."""
    shown = [each for each in report.disagreements if each.namespace in namespaces]
    return replace(report, disagreements=shown, last_failure="")
