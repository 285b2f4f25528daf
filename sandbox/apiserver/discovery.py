"""What clients read before they ask for objects: version, groups, resources and OpenAPI.

kubectl reads OpenAPI before it creates, applies or patches: it asks whether PATCH of a kind knows
the parameter fieldValidation; if so it leaves checking to the server. That is all that is in it: no
schemas for `kubectl explain`. kubectl knows how lists merge by the types compiled into it.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import msgspec
from aiohttp import web

from sandbox.apiserver.errors import no_such_path
from sandbox.apiserver.resources.table import SUBRESOURCE_VERBS, ApiResource, ResourceTable
from sandbox.apiserver.settings import Settings

_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
}
"""Subresources that take a kind of their own; the others take the resource's."""


def add_routes(router: web.UrlDispatcher, resources: ResourceTable, settings: Settings) -> None:
    """Serve health, version, discovery and OpenAPI."""
    documents = Documents(resources)
    for path in ("/healthz", "/livez", "/readyz"):
        router.add_get(path, _healthy)

    async def version(_: web.Request) -> web.Response:
        return _json(version_of(settings.version))

    router.add_get("/version", version)
    router.add_get("/api", documents.core)
    router.add_get("/apis", documents.groups)
    router.add_get("/api/{version}", documents.resources)
    router.add_get("/apis/{group}/{version}", documents.resources)
    router.add_get("/openapi/v2", _openapi_v2)
    router.add_get("/openapi/v3", documents.openapi_index)
    router.add_get("/openapi/v3/{key:.+}", documents.openapi)


def version_of(text: str) -> dict[str, str]:
    """Return the answer to /version."""
    major, minor, _ = text.removeprefix("v").split(".", 2)
    return {"major": major, "minor": minor, "gitVersion": text, "platform": f"{sys.platform}/amd64"}


class Documents:
    """Describes a table of resources, as it is at each request."""

    def __init__(self, resources: ResourceTable) -> None:
        self._resources = resources

    async def core(self, _: web.Request) -> web.Response:
        """Answer /api."""
        versions = self._resources.versions()[""]
        return _json(
            {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []}
        )

    async def groups(self, _: web.Request) -> web.Response:
        """Answer /apis."""
        groups = [self._group(group) for group in self._resources.versions() if group]
        return _json({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    async def resources(self, request: web.Request) -> web.Response:
        """Answer /api/v1 and /apis/GROUP/VERSION."""
        group, version = request.match_info.get("group", ""), request.match_info["version"]
        rows = (row for row in self._resources.rows if (row.group, row.version) == (group, version))
        listed = [each for row in rows for each in _described(row)]
        if not listed:
            raise no_such_path()
        return _json(
            {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{group}/{version}" if group else version,
                "resources": listed,
            }
        )

    async def openapi_index(self, _: web.Request) -> web.Response:
        """Answer /openapi/v3."""
        links = {}
        for key, rows in self._by_version().items():
            number = crc32(repr([(row.plural, row.kind) for row in rows]).encode())
            # Clients keep documents by it.
            links[key] = {"serverRelativeURL": f"/openapi/v3/{key}?hash={number:x}"}
        return _json({"paths": links})

    async def openapi(self, request: web.Request) -> web.Response:
        """Answer with the document of one API version."""
        rows = self._by_version().get(request.match_info["key"])
        if rows is None:
            raise no_such_path()
        return _json(
            {
                "openapi": "3.0.0",
                "info": {"title": "Moorage sandbox", "version": "v1"},
                "paths": {_path(row): {"patch": _patch(row)} for row in rows},
            }
        )

    def _by_version(self) -> Mapping[str, Sequence[ApiResource]]:
        rows: dict[str, list[ApiResource]] = {}
        for row in self._resources.rows:
            rows.setdefault(f"{'apis' if row.group else 'api'}/{row.api_version}", []).append(row)
        return rows

    def _group(self, group: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._resources.versions()[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _described(resource: ApiResource) -> Iterator[dict[str, Any]]:
    names = {"shortNames": resource.short_names, "categories": resource.categories}
    for name in ("", *resource.subresources):
        yield {
            "name": f"{resource.plural}/{name}" if name else resource.plural,
            "singularName": "" if name else resource.singular,
            "namespaced": resource.namespaced,
            "verbs": SUBRESOURCE_VERBS[name] if name else resource.verbs,
            **_kind(resource, name),
            **({} if name else names),
        }


def _kind(resource: ApiResource, subresource: str = "") -> dict[str, str]:
    own = (resource.group, resource.version, resource.kind)
    return dict(zip(("group", "version", "kind"), _KINDS.get(subresource, own), strict=True))


def _json(document: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _openapi_v2(_: web.Request) -> web.Response:
    """Answer with an empty message: kubectl checks each `kind: List` by it, and it allows all."""
    kind = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    return web.Response(content_type=kind)


def _path(row: ApiResource) -> str:
    space = "namespaces/{namespace}/" if row.namespaced else ""
    return f"/{'apis' if row.group else 'api'}/{row.api_version}/{space}{row.plural}/{{name}}"


def _patch(row: ApiResource) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _kind(row),
    }
