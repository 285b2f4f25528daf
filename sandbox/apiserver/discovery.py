"""Says what is served: the documents that clients read before they ask for objects."""

import sys
from typing import Any

import msgspec
from aiohttp import web

from sandbox.apiserver.resources import RESOURCES, Resource
from sandbox.apiserver.settings import Settings

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


def add_routes(router: web.UrlDispatcher, settings: Settings) -> None:
    """Serve health, version and discovery."""
    for path in ("/healthz", "/livez", "/readyz"):
        router.add_get(path, _healthy)
    _add(router, "/version", version(settings.version))
    _add(router, "/api", _core_versions(), aggregated=aggregate(core=True))
    _add(router, "/apis", {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups()},
         aggregated=aggregate(core=False))  # fmt: skip
    for group, served in _versions().items():
        if group:
            _add(router, f"/apis/{group}", _group(group) | {"kind": "APIGroup", "apiVersion": "v1"})
        for each in served:
            prefix = f"/apis/{group}" if group else "/api"
            _add(router, f"{prefix}/{each}", resource_list(group, each))


def version(text: str) -> dict[str, str]:
    """Return the answer to /version."""
    major, minor, _ = text.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": text,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"python{sys.version_info.major}.{sys.version_info.minor}",
        "platform": f"{sys.platform}/amd64",
    }


def resource_list(group: str, version_: str) -> dict[str, Any]:
    """Return the APIResourceList of one group and version."""
    resources: list[dict[str, Any]] = []
    for resource in RESOURCES:
        if (resource.group, resource.version) != (group, version_):
            continue
        resources.append(_described(resource))
        for name, kind in resource.subresources.items():
            resources.append(
                {
                    "name": f"{resource.plural}/{name}",
                    "singularName": "",
                    "namespaced": resource.namespaced,
                    "kind": kind,
                    "verbs": _subresource_verbs(name),
                }
            )
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version_}" if group else version_,
        "resources": resources,
    }


def aggregate(*, core: bool) -> dict[str, Any]:
    """Return all groups at once: the APIGroupDiscoveryList of /api or of /apis."""
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [_aggregated_version(group, each) for each in served],
        }
        for group, served in _versions().items()
        if bool(group) != core
    ]
    return {"kind": "APIGroupDiscoveryList", "metadata": {}, "items": items}


def _described(resource: Resource) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.categories:
        described["categories"] = list(resource.categories)
    return described


def _aggregated_version(group: str, version_: str) -> dict[str, Any]:
    resources = [r for r in RESOURCES if (r.group, r.version) == (group, version_)]
    return {
        "version": version_,
        "freshness": "Current",
        "resources": [_aggregated_resource(resource) for resource in resources],
    }


def _aggregated_resource(resource: Resource) -> dict[str, Any]:
    described: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _kind(resource, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.categories:
        described["categories"] = list(resource.categories)
    if resource.subresources:
        described["subresources"] = [
            {
                "subresource": name,
                "responseKind": _kind(resource, kind),
                "verbs": _subresource_verbs(name),
            }
            for name, kind in resource.subresources.items()
        ]
    return described


def _kind(resource: Resource, kind: str) -> dict[str, str]:
    if kind == "Eviction":
        return {"group": "policy", "version": "v1", "kind": kind}
    return {"group": resource.group, "version": resource.version, "kind": kind}


def _subresource_verbs(name: str) -> list[str]:
    return ["get", "patch", "update"] if name == "status" else ["create"]


def _versions() -> dict[str, list[str]]:
    served: dict[str, list[str]] = {}
    for resource in RESOURCES:
        versions = served.setdefault(resource.group, [])
        if resource.version not in versions:
            versions.append(resource.version)
    return served


def _core_versions() -> dict[str, Any]:
    return {"kind": "APIVersions", "versions": _versions()[""], "serverAddressByClientCIDRs": []}


def _groups() -> list[dict[str, Any]]:
    return [_group(group) for group in _versions() if group]


def _group(group: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{each}", "version": each} for each in _versions()[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _add(
    router: web.UrlDispatcher,
    path: str,
    document: dict[str, Any],
    aggregated: dict[str, Any] | None = None,
) -> None:
    async def show(request: web.Request) -> web.Response:
        wanted = request.headers.get("Accept", "")
        if aggregated and "as=APIGroupDiscoveryList" in wanted:
            version_ = "v2" if "v=v2;" in wanted else "v2beta1"
            body = aggregated | {"apiVersion": f"apidiscovery.k8s.io/{version_}"}
            return _json(body, _AGGREGATED.format(version_))
        return _json(document, "application/json")

    router.add_get(path, show)


def _json(document: dict[str, Any], content_type: str) -> web.Response:
    headers = {"Content-Type": content_type}
    return web.Response(body=msgspec.json.encode(document), headers=headers)


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")
