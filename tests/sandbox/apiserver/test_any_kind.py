"""Every kind, built-in or custom, is stored, listed, watched, patched, scaled and deleted alike."""

from typing import Any

import pytest

from sandbox.apiserver.resources.table import BUILT_IN, ApiResource
from tests.sandbox.apiserver.support import DEFINITIONS, RACK, RACKS, Http, definition, pod, version

WORKLOAD = {
    "metadata": {"name": "x"},
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod()["spec"]},
    },
}
SELECTING = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
NEEDS_MORE = {"Pod": pod("x"), "CustomResourceDefinition": definition()} | dict.fromkeys(
    SELECTING, WORKLOAD
)
STORED = [row for row in BUILT_IN if row.is_stored and row.group != "events.k8s.io"]


@pytest.mark.parametrize("resource", STORED, ids=lambda row: f"{row.group}/{row.plural}")
async def test_an_object_of_the_kind_lives_and_dies(http: Http, resource: ApiResource) -> None:
    prefix = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    path = f"{prefix}{'/namespaces/default' * resource.namespaced}/{resource.plural}"
    since = (await http.get(path)).body["metadata"]["resourceVersion"]
    created = await http.create(path, NEEDS_MORE.get(resource.kind, {"metadata": {"name": "x"}}))
    name = created["metadata"]["name"]
    assert (created["apiVersion"], created["kind"]) == (resource.api_version, resource.kind)
    assert name in await http.names(path)
    changed = await http.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}})
    assert changed.body["metadata"]["labels"]["a"] == "b"
    async with http.watch(path, resourceVersion=since) as events:
        assert (await http.send("DELETE", f"{path}/{name}")).code == 200
        seen = [kind for kind, each in await events.take(3) if each == name]
    assert seen[0] == "ADDED"
    assert set(seen[1:]) <= {"MODIFIED", "DELETED"}
    assert (await http.get(f"{path}/{name}")).code == 404


@pytest.mark.parametrize("prefix", ["api", "apis"])
async def test_every_resource_supports_server_side_validation(http: Http, prefix: str) -> None:
    """kubectl create and apply look for this before they send anything."""
    index = (await http.get("/openapi/v3")).body["paths"]
    for resource in (each for each in BUILT_IN if bool(each.group) == (prefix == "apis")):
        link = index[f"{prefix}/{resource.api_version}"]["serverRelativeURL"]
        paths = (await http.get(link)).body["paths"].values()
        patches = {p["patch"]["x-kubernetes-group-version-kind"]["kind"]: p["patch"] for p in paths}
        parameters = [each["name"] for each in patches[resource.kind]["parameters"]]
        assert "fieldValidation" in parameters, resource


async def test_discovery_lists_what_a_definition_adds(http: Http) -> None:
    await http.create(DEFINITIONS, definition(version(subresources={"status": {}})))
    groups = {each["name"] for each in (await http.get("/apis")).body["groups"]}
    assert "example.com" in groups
    resources = {r["name"]: r for r in (await http.get("/apis/example.com/v1")).body["resources"]}
    assert resources["racks"]["shortNames"] == ["rk"]
    assert resources["racks"]["singularName"] == "rack"
    assert resources["racks/status"]["kind"] == "Rack"
    paths = (await http.get("/openapi/v3/apis/example.com/v1")).body["paths"]
    assert list(paths) == ["/apis/example.com/v1/namespaces/{namespace}/racks/{name}"]


async def test_everything_goes_with_the_definition(http: Http) -> None:
    await http.create(DEFINITIONS, definition())
    async with http.watch(RACKS) as events:
        await http.create(RACKS, RACK)
        await http.send("DELETE", f"{DEFINITIONS}/racks.example.com")
        assert await events.take(2) == [("ADDED", "r1"), ("DELETED", "r1")]
    assert (await http.get(RACKS)).code == 404
    assert (await http.get("/apis/example.com/v1")).code == 404
    await http.create(DEFINITIONS, definition())
    assert await http.names(RACKS) == []


async def test_a_definition_may_be_cluster_wide_and_change(http: Http) -> None:
    await http.create(DEFINITIONS, definition(scope="Cluster"))
    created = await http.create("/apis/example.com/v1/racks", RACK)
    assert "namespace" not in created["metadata"]
    assert (await http.get(RACKS)).code == 404
    change = {"spec": {"versions": [version(), version("v2", storage=False)]}}
    assert (await http.patch(f"{DEFINITIONS}/racks.example.com", change)).code == 200
    assert await http.names("/apis/example.com/v2/racks") == ["r1"]


async def test_a_definition_cannot_take_the_place_of_a_built_in_kind(http: Http) -> None:
    wrong = definition()
    wrong["metadata"]["name"] = "deviceclasses.resource.k8s.io"
    wrong["spec"] |= {"group": "resource.k8s.io"}
    wrong["spec"]["names"]["plural"] = "deviceclasses"
    reply = await http.send("POST", DEFINITIONS, wrong)
    assert reply.code == 422
    assert (await http.get("/apis/resource.k8s.io/v1/deviceclasses")).code == 200


@pytest.mark.parametrize(
    ("spec", "named"),
    [({"versions": {}}, "versions"), ({"names": {"plural": "racks"}}, "kind"), (None, "spec")],
)
async def test_definitions_that_cannot_be_read_are_refused(
    http: Http, spec: dict[str, Any] | None, named: str
) -> None:
    wrong = definition()
    reply = await http.send("POST", DEFINITIONS, wrong | {"spec": spec and wrong["spec"] | spec})
    assert (reply.code, named in reply.message) == (400, True), reply.text
