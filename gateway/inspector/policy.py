"""Answers `GET /policy`: the effective policy, with its origin by line."""

from aiohttp import web
from msgspec import to_builtins

from gateway.inspector.origins import lines_of
from gateway.policy.policy import PolicyHolder
from gateway.policy.reload import PolicyReloader


def policy_route(policy: PolicyHolder, reloader: PolicyReloader | None) -> web.RouteDef:
    """Return the route of the policy; *reloader* follows its file, if it has one."""

    async def show(_: web.Request) -> web.Response:
        document, resolved = policy.in_force()
        if resolved is None:
            return web.json_response({"error": policy.problem}, status=503)
        return web.json_response(
            {
                "source": resolved.source,
                "revision": resolved.revision,
                "note": (reloader.note() if reloader else None) or "",
                "warnings": resolved.warnings,
                "lines": [to_builtins(line) for line in lines_of(document, resolved)],
            }
        )

    return web.get("/policy", show)
