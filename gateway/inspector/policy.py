"""Answers `GET /policy`: the effective policy with its origin by line, and what plugins declare."""

from collections.abc import Iterator
from typing import Any

from aiohttp import web
from msgspec import to_builtins

from gateway.inspector.origins import lines_of
from gateway.policy.policy import PolicyHolder
from gateway.replicas.reload import PolicyReloader
from moorage_host.policy import KINDS, ResolvedPolicy


def policy_route(policy: PolicyHolder, reloader: PolicyReloader | None) -> web.RouteDef:
    """Return the route of the policy; *reloader* follows its file, if it has one."""

    async def show(_: web.Request) -> web.Response:
        document, resolved = policy.active()
        if resolved is None:
            return web.json_response({"error": policy.problem}, status=503)
        return web.json_response(
            {
                "source": resolved.source,
                "revision": resolved.revision,
                "note": (reloader.note() if reloader else None) or "",
                "fileHash": reloader.file_hash if reloader else "",
                "scoreScale": resolved.score_scale,
                "profiles": resolved.profile_names,
                "plugins": list(_plugins(resolved)),
                "warnings": resolved.warnings,
                "lines": [to_builtins(line) for line in lines_of(document, resolved)],
            }
        )

    return web.get("/policy", show)


def _plugins(resolved: ResolvedPolicy) -> Iterator[dict[str, Any]]:
    """Yield what each enabled plugin declares, once for each kind that it is enabled as."""
    for kind in KINDS:
        policy = resolved.policies[kind]
        live = {plugin.name for profile in policy.profiles for plugin in profile.plugins}
        for name in policy.plugins:
            if (info := resolved.catalogue.get(kind, name)) is not None:
                yield {
                    "name": name,
                    "kind": kind,
                    "onlyShadow": name not in live,
                    "points": sorted(info.points),
                    "readsPlacements": info.reads_placements,
                    "reads": [to_builtins(each) for each in info.reads],
                    "managedResources": info.managed_resources,
                }
