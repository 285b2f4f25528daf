"""The part of OpenAPI that kubectl needs to create, apply and explain.

kubectl asks whether PATCH of a kind knows the parameter fieldValidation; if so it leaves checking
to the server. The schemas of built-in kinds name the outermost fields only; kubectl merges by the
types that are compiled into it. A custom resource has the schema of its definition.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from sandbox.apiserver.errors import no_such_path
from sandbox.apiserver.resources.resource import Resource
from sandbox.apiserver.resources.table import ResourceTable

_INFO = {"title": "Moorage sandbox", "version": "v1"}
# Clients ask for ...spec.v2@v1.0+protobuf, which is no valid media type to answer with.
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# An openapi.v2.Document with nothing but swagger = "2.0".
_V2_EMPTY = b"\x0a\x032.0"
_KIND = "x-kubernetes-group-version-kind"
_IDENTITY = {
    "apiVersion": {"type": "string", "description": "The group and version of the object."},
    "kind": {"type": "string", "description": "The kind of the object."},
    "metadata": {"type": "object", "description": "Standard object metadata."},
}


def add_routes(router: web.UrlDispatcher, resources: ResourceTable) -> None:
    """Serve /openapi/v2 and /openapi/v3."""

    async def show_index(_: web.Request) -> web.Response:
        links = {key: _link(key, text) for key, text in _encoded(resources).items()}
        return web.json_response({"paths": links})

    async def show(request: web.Request) -> web.Response:
        document = _encoded(resources).get(request.match_info["key"])
        if document is None:
            raise no_such_path()
        return web.Response(body=document, content_type="application/json")

    router.add_get("/openapi/v2", _show_v2)
    router.add_get("/openapi/v3", show_index)
    router.add_get("/openapi/v3/{key:.+}", show)


async def _show_v2(request: web.Request) -> web.Response:
    if "protobuf" in request.headers.get("Accept", ""):
        return web.Response(body=_V2_EMPTY, headers={"Content-Type": _V2_PROTOBUF})
    return web.json_response({"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {}})


def _encoded(resources: ResourceTable) -> Mapping[str, bytes]:
    documents: dict[str, dict[str, Any]] = {}
    for resource in resources.rows:
        prefix = "apis" if resource.group else "api"
        document = documents.setdefault(f"{prefix}/{resource.api_version}", _document())
        document["paths"][_path(prefix, resource)] = {"patch": _patch(resource)}
        document["components"]["schemas"][f"{resource.version}.{resource.kind}"] = _schema(resource)
    return {key: msgspec.json.encode(document) for key, document in documents.items()}


def _document() -> dict[str, Any]:
    return {"openapi": "3.0.0", "info": _INFO, "paths": {}, "components": {"schemas": {}}}


def _path(prefix: str, resource: Resource) -> str:
    space = "namespaces/{namespace}/" if resource.namespaced else ""
    return f"/{prefix}/{resource.api_version}/{space}{resource.plural}/{{name}}"


def _patch(resource: Resource) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        _KIND: _group_version_kind(resource),
    }


def _schema(resource: Resource) -> dict[str, Any]:
    own = resource.schema or {
        "description": f"A {resource.kind}; the sandbox stores it without a schema.",
        "properties": {name: {"type": "object"} for name in ("spec", "status")},
    }
    properties = _IDENTITY | own.get("properties", {}) | {"metadata": _IDENTITY["metadata"]}
    kind = [_group_version_kind(resource)]
    return {**own, "type": "object", "properties": properties, _KIND: kind}


def _group_version_kind(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _link(key: str, document: bytes) -> dict[str, str]:
    digest = hashlib.sha256(document).hexdigest()
    return {"serverRelativeURL": f"/openapi/v3/{key}?hash={digest}"}
