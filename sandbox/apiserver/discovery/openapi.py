"""OpenAPI as kubectl reads it: to explain fields, and before it creates, applies or patches.

kubectl asks whether PATCH of a kind knows the parameter fieldValidation; if so it leaves checking
to the server. No document says how lists merge: kubectl knows that by the types compiled into it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web

from sandbox.apiserver.errors import no_such_path
from sandbox.apiserver.resources.resource import Resource
from sandbox.apiserver.resources.table import ResourceTable
from sandbox.apiserver.schemas import KIND, METADATA, REFERENCE, Schema, built_in, definitions

_INFO = {"title": "Moorage sandbox", "version": "v1"}
# Clients ask for ...spec.v2@v1.0+protobuf, which is no valid media type to answer with.
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# An openapi.v2.Document with nothing but swagger = "2.0".
_V2_EMPTY = b"\x0a\x032.0"


def add_routes(router: web.UrlDispatcher, resources: ResourceTable) -> None:
    """Serve /openapi/v2 and /openapi/v3, with one document for each API version."""

    async def index(_: web.Request) -> web.Response:
        links = {
            key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={_digest(rows)}"}
            for key, rows in _by_version(resources).items()
        }
        return web.json_response({"paths": links})

    async def show(request: web.Request) -> web.Response:
        rows = _by_version(resources).get(request.match_info["key"])
        if rows is None:
            raise no_such_path()
        body = msgspec.json.encode(_document(rows))
        return web.Response(body=body, content_type="application/json")

    router.add_get("/openapi/v2", _show_v2)
    router.add_get("/openapi/v3", index)
    router.add_get("/openapi/v3/{key:.+}", show)


def _by_version(resources: ResourceTable) -> Mapping[str, Sequence[Resource]]:
    rows: dict[str, list[Resource]] = {}
    for row in resources.rows:
        rows.setdefault(f"{'apis' if row.group else 'api'}/{row.api_version}", []).append(row)
    return rows


async def _show_v2(request: web.Request) -> web.Response:
    if "protobuf" in request.headers.get("Accept", ""):
        return web.Response(body=_V2_EMPTY, headers={"Content-Type": _V2_PROTOBUF})
    return web.json_response({"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {}})


def _digest(rows: Sequence[Resource]) -> str:
    """Return what changes with the document; clients keep documents by it."""
    parts = [(row.plural, row.kind, row.namespaced, row.schema) for row in rows]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _document(rows: Sequence[Resource]) -> Schema:
    schemas: dict[str, Schema] = {}
    wanted: list[str] = []
    for row in rows:
        if not row.schema and (known := built_in(row.api_version, row.kind)):
            wanted += _references(known)
        else:
            own = row.schema or _without_schema(row)
            schemas[f"{row.version}.{row.kind}"] = {**own, KIND: [_group_version_kind(row)]}
            wanted += _references(own)
    while wanted:
        name = wanted.pop()
        if name not in schemas:
            schemas[name] = definitions()[name]
            wanted += _references(schemas[name])
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": {_path(row): {"patch": _patch(row)} for row in rows},
        "components": {"schemas": schemas},
    }


def _references(schema: Any) -> Iterator[str]:
    """Yield the names of Kubernetes' types that a schema refers to."""
    if isinstance(schema, dict):
        name = str(schema.get("$ref", "")).removeprefix(REFERENCE)
        if name in definitions():
            yield name
        schema = list(schema.values())
    for each in schema if isinstance(schema, list) else ():
        yield from _references(each)


def _without_schema(row: Resource) -> Schema:
    fields = {name: {"type": "object"} for name in ("spec", "status")}
    return {
        "type": "object",
        "description": f"A {row.kind}; the sandbox stores it without a schema.",
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
                       "metadata": METADATA, **fields},
    }  # fmt: skip


def _path(row: Resource) -> str:
    space = "namespaces/{namespace}/" if row.namespaced else ""
    return f"/{'apis' if row.group else 'api'}/{row.api_version}/{space}{row.plural}/{{name}}"


def _patch(row: Resource) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        KIND: _group_version_kind(row),
    }


def _group_version_kind(row: Resource) -> dict[str, str]:
    return {"group": row.group, "version": row.version, "kind": row.kind}
