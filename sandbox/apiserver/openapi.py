"""The least of OpenAPI that kubectl needs to create and apply without --validate=false.

kubectl asks whether PATCH of a kind knows the parameter fieldValidation; if so it leaves checking
to the server. So each kind has a path with a PATCH, and there are no schemas: kubectl then falls
back to the types that are compiled into it.
"""

import hashlib
from typing import Any

import msgspec
from aiohttp import web

from sandbox.apiserver.errors import no_such_path
from sandbox.apiserver.resources import RESOURCES, Resource

_INFO = {"title": "Moorage sandbox", "version": "v1"}
# Clients ask for ...spec.v2@v1.0+protobuf, which is no valid media type to answer with.
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# An openapi.v2.Document with nothing but swagger = "2.0".
_V2_EMPTY = b"\x0a\x032.0"


def add_routes(router: web.UrlDispatcher) -> None:
    """Serve /openapi/v2 and /openapi/v3."""
    documents = {key: msgspec.json.encode(value) for key, value in _documents().items()}
    index = msgspec.json.encode({"paths": {key: _link(key, documents[key]) for key in documents}})

    async def show_index(_: web.Request) -> web.Response:
        return web.Response(body=index, content_type="application/json")

    async def show(request: web.Request) -> web.Response:
        document = documents.get(request.match_info["key"])
        if document is None:
            raise no_such_path()
        return web.Response(body=document, content_type="application/json")

    router.add_get("/openapi/v2", _show_v2)
    router.add_get("/openapi/v3", show_index)
    router.add_get("/openapi/v3/{key:.+}", show)


async def _show_v2(request: web.Request) -> web.Response:
    if "protobuf" in request.headers.get("Accept", ""):
        return web.Response(body=_V2_EMPTY, headers={"Content-Type": _V2_PROTOBUF})
    document = {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {}}
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")


def _documents() -> dict[str, dict[str, Any]]:
    documents: dict[str, dict[str, Any]] = {}
    for resource in RESOURCES:
        prefix = "apis" if resource.group else "api"
        document = documents.setdefault(f"{prefix}/{resource.api_version}", _document())
        document["paths"][_path(prefix, resource)] = {"patch": _patch(resource)}
    return documents


def _document() -> dict[str, Any]:
    return {"openapi": "3.0.0", "info": _INFO, "paths": {}, "components": {"schemas": {}}}


def _path(prefix: str, resource: Resource) -> str:
    space = "namespaces/{namespace}/" if resource.namespaced else ""
    return f"/{prefix}/{resource.api_version}/{space}{resource.plural}/{{name}}"


def _patch(resource: Resource) -> dict[str, Any]:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
    }


def _link(key: str, document: bytes) -> dict[str, str]:
    digest = hashlib.sha256(document).hexdigest()
    return {"serverRelativeURL": f"/openapi/v3/{key}?hash={digest}"}
