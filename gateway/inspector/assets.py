"""Serves the files of the page, under a content security policy that allows no inline script.

They are read once, when the gateway starts: a page is never made of two versions.
"""

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import hdrs, web

PREFIX = "/inspector/"

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    hdrs.CACHE_CONTROL: "no-cache",  # asked for again, and answered by 304 mostly
}
"""Sent with every file."""

_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", "": "text/plain"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asset:
    body: bytes
    content_type: str
    tag: str


def asset_routes() -> list[web.RouteDef]:
    """Return the routes of the page's files, and of `/`, which leads there."""
    assets = dict(_read(files("gateway.inspector") / "static", PREFIX))
    assets[PREFIX] = assets[f"{PREFIX}index.html"]
    missing = {"error": f"the inspector has no such file; it begins at {PREFIX}"}

    async def show(request: web.Request) -> web.Response:
        asset = assets.get(request.path)
        if asset is None:
            return web.json_response(missing, status=404, headers=HEADERS)
        if any(each.value == asset.tag for each in request.if_none_match or ()):
            return web.Response(status=304, headers={**HEADERS, hdrs.ETAG: f'"{asset.tag}"'})
        response = web.Response(
            body=asset.body,
            content_type=asset.content_type,
            charset="utf-8" if asset.content_type.startswith("text/") else None,
            headers={**HEADERS, hdrs.ETAG: f'"{asset.tag}"'},
        )
        response.enable_compression()
        return response

    async def redirect(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={hdrs.LOCATION: PREFIX, **HEADERS})

    return [
        web.get("/", redirect),
        web.get(PREFIX.rstrip("/"), redirect),
        web.get(f"{PREFIX}{{file:.*}}", show),
    ]


def _read(folder: Traversable, path: str) -> list[tuple[str, _Asset]]:
    found: list[tuple[str, _Asset]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _read(each, f"{path}{each.name}/")
        else:
            found.append((path + each.name, _asset(each)))
    return found


def _asset(file: Traversable) -> _Asset:
    body = file.read_bytes()
    _, dot, extension = file.name.rpartition(".")
    content_type = _TYPES.get(dot and dot + extension) or mimetypes.guess_type(file.name)[0]
    tag = hashlib.sha256(body).hexdigest()[:16]
    return _Asset(body=body, content_type=content_type or "application/octet-stream", tag=tag)
