"""Health, version, and the lists of groups and resources that clients read first."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from aiohttp import web

from sandbox.apiserver.errors import no_such_path
from sandbox.apiserver.resources.resource import SUBRESOURCE_VERBS, Resource
from sandbox.apiserver.resources.table import ResourceTable
from sandbox.apiserver.settings import Settings

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
}
"""Subresources that take a kind of their own; the others take the resource's."""


def add_routes(router: web.UrlDispatcher, resources: ResourceTable, settings: Settings) -> None:
    """Serve health, version and discovery."""
    documents = Documents(resources)
    for path in ("/healthz", "/livez", "/readyz"):
        router.add_get(path, _healthy)

    async def version(_: web.Request) -> web.Response:
        return _json(version_of(settings.version))

    router.add_get("/version", version)
    router.add_get("/api", documents.core)
    router.add_get("/apis", documents.groups)
    router.add_get("/api/{version}", documents.resources)
    router.add_get("/apis/{group}", documents.group)
    router.add_get("/apis/{group}/{version}", documents.resources)


def version_of(text: str) -> dict[str, str]:
    """Return the answer to /version."""
    major, minor, _ = text.removeprefix("v").split(".", 2)
    return {"major": major, "minor": minor, "gitVersion": text, "platform": f"{sys.platform}/amd64"}


class Documents:
    """Describes a table of resources, as it is at each request."""

    def __init__(self, resources: ResourceTable) -> None:
        self._resources = resources

    async def core(self, request: web.Request) -> web.Response:
        """Answer /api."""
        versions = self._resources.versions()[""]
        plain = {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []}
        return self._answer(request, plain, core=True)

    async def groups(self, request: web.Request) -> web.Response:
        """Answer /apis."""
        groups = [self._group(group) for group in self._resources.versions() if group]
        plain = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        return self._answer(request, plain, core=False)

    async def group(self, request: web.Request) -> web.Response:
        """Answer /apis/GROUP."""
        group = request.match_info["group"]
        if group not in self._resources.versions():
            raise no_such_path()
        return _json(self._group(group) | {"kind": "APIGroup", "apiVersion": "v1"})

    async def resources(self, request: web.Request) -> web.Response:
        """Answer /api/v1 and /apis/GROUP/VERSION."""
        group, version = request.match_info.get("group", ""), request.match_info["version"]
        listed = [each for row in self._in(group, version) for each in _described(row)]
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

    def _in(self, group: str, version: str) -> list[Resource]:
        return [row for row in self._resources.rows if (row.group, row.version) == (group, version)]

    def _group(self, group: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._resources.versions()[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _answer(self, request: web.Request, plain: object, *, core: bool) -> web.Response:
        accept = request.headers.get("Accept", "")
        if "as=APIGroupDiscoveryList" not in accept:
            return _json(plain)
        version = "v2" if "v=v2;" in accept else "v2beta1"
        items = [
            {
                "metadata": {"name": group, "creationTimestamp": None},
                "versions": [self._aggregated(group, each) for each in versions],
            }
            for group, versions in self._resources.versions().items()
            if bool(group) != core
        ]
        body = {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": items,
        }
        return _json(body, _AGGREGATED.format(version))

    def _aggregated(self, group: str, version: str) -> dict[str, Any]:
        resources = [_aggregated_resource(row) for row in self._in(group, version)]
        return {"version": version, "freshness": "Current", "resources": resources}


def _described(resource: Resource) -> Iterator[dict[str, Any]]:
    for name in ("", *resource.subresources):
        yield {
            "name": f"{resource.plural}/{name}" if name else resource.plural,
            "singularName": "" if name else resource.singular,
            "namespaced": resource.namespaced,
            "kind": _kind(resource, name)["kind"],
            "verbs": _verbs(resource, name),
        } | ({} if name else _names(resource))


def _aggregated_resource(resource: Resource) -> dict[str, Any]:
    subresources = [
        {
            "subresource": name,
            "responseKind": _kind(resource, name),
            "verbs": _verbs(resource, name),
        }
        for name in resource.subresources
    ]
    return {
        "resource": resource.plural,
        "responseKind": _kind(resource, ""),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": resource.verbs,
        "subresources": subresources,
    } | _names(resource)


def _verbs(resource: Resource, subresource: str) -> Sequence[str]:
    return SUBRESOURCE_VERBS[subresource] if subresource else resource.verbs


def _names(resource: Resource) -> dict[str, Any]:
    return {"shortNames": resource.short_names, "categories": resource.categories}


def _kind(resource: Resource, subresource: str) -> dict[str, str]:
    own = (resource.group, resource.version, resource.kind)
    return dict(zip(("group", "version", "kind"), _KINDS.get(subresource, own), strict=True))


def _json(document: object, content_type: str = "application/json") -> web.Response:
    headers = {"Content-Type": content_type}
    return web.Response(body=msgspec.json.encode(document), headers=headers)


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")
