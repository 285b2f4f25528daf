"""OpenAPI as kubectl reads it: to explain fields, and before it creates, applies or patches.

kubectl asks whether PATCH of a kind knows the parameter fieldValidation; if so it leaves checking
to the server. No document says how lists merge: kubectl knows that by the types compiled into it.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web

from sandbox.apiserver.errors import no_such_path
from sandbox.apiserver.resources.resource import Resource
from sandbox.apiserver.resources.table import ResourceTable
from sandbox.apiserver.schemas.models import (
    METADATA,
    REFERENCE,
    Schema,
    built_in,
    described,
    name_of,
)

_INFO = {"title": "Moorage sandbox", "version": "v1"}
# Clients ask for ...spec.v2@v1.0+protobuf, which is no valid media type to answer with.
_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# An openapi.v2.Document with nothing but swagger = "2.0".
_V2_EMPTY = b"\x0a\x032.0"
_KIND = "x-kubernetes-group-version-kind"


def add_routes(router: web.UrlDispatcher, resources: ResourceTable) -> None:
    """Serve /openapi/v2 and /openapi/v3."""
    documents = Documents(resources)
    router.add_get("/openapi/v2", _show_v2)
    router.add_get("/openapi/v3", documents.index)
    router.add_get("/openapi/v3/{key:.+}", documents.show)


class Documents:
    """One document for each API version, made when it is first asked for."""

    def __init__(self, resources: ResourceTable) -> None:
        self._resources = resources
        self._made: dict[str, tuple[str, bytes]] = {}

    async def index(self, _: web.Request) -> web.Response:
        """Answer /openapi/v3."""
        links = {
            key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={_digest(rows)}"}
            for key, rows in self._rows().items()
        }
        return web.json_response({"paths": links})

    async def show(self, request: web.Request) -> web.Response:
        """Answer with one document."""
        key = request.match_info["key"]
        rows = self._rows().get(key)
        if rows is None:
            raise no_such_path()
        digest = _digest(rows)
        if self._made.get(key, ("",))[0] != digest:
            # The core group takes half a second.
            self._made[key] = digest, await asyncio.to_thread(_document, rows)
        return web.Response(body=self._made[key][1], content_type="application/json")

    def _rows(self) -> Mapping[str, Sequence[Resource]]:
        rows: dict[str, list[Resource]] = {}
        for row in self._resources.rows:
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


def _document(rows: Sequence[Resource]) -> bytes:
    schemas: dict[str, Schema] = {}
    for row in rows:
        own = row.schema or built_in(row.api_version, row.kind) or _unknown(row)
        name = own.get("$ref", f"{REFERENCE}{row.version}.{row.kind}").removeprefix(REFERENCE)
        _add(schemas, name, own)
        schemas[name] = {**schemas[name], _KIND: [_group_version_kind(row)]}
    document = {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": {_path(row): {"patch": _patch(row)} for row in rows},
        "components": {"schemas": schemas},
    }
    return msgspec.json.encode(document)


def _add(schemas: dict[str, Schema], name: str, schema: Schema) -> None:
    """Add a schema, and the types that it refers to."""
    schemas[name] = described(name) if name_of(schema.get("$ref")) else schema
    for reference in _references(schemas[name]):
        if reference not in schemas:
            _add(schemas, reference, {"$ref": REFERENCE + reference})


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [each for inner in schema for each in _references(inner)]
    if not isinstance(schema, dict):
        return []
    if name := name_of(schema.get("$ref")):
        return [name]
    return [each for inner in schema.values() for each in _references(inner)]


def _unknown(row: Resource) -> Schema:
    text = {"type": "string"}
    fields = {name: {"type": "object"} for name in ("spec", "status")}
    return {
        "type": "object",
        "description": f"A {row.kind}; the sandbox stores it without a schema.",
        "properties": {"apiVersion": text, "kind": text, "metadata": METADATA, **fields},
    }


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
        _KIND: _group_version_kind(row),
    }


def _group_version_kind(row: Resource) -> dict[str, str]:
    return {"group": row.group, "version": row.version, "kind": row.kind}
