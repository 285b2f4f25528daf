"""Every kind, built-in or custom, is stored, listed, watched, patched, scaled and deleted alike."""

from typing import Any

import pytest

from sandbox.apiserver.resources.table import BUILT_IN, ApiResource
from tests.sandbox.apiserver.resources.definitions import (
    DEFINITIONS,
    RACKS,
    definition,
    rack,
    version,
)
from tests.sandbox.apiserver.support import Http, pod

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


def path_of(resource: ApiResource) -> str:
    prefix = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    space = "/namespaces/default" if resource.namespaced else ""
    return f"{prefix}{space}/{resource.plural}"


@pytest.mark.parametrize("resource", STORED, ids=lambda row: f"{row.group}/{row.plural}")
async def test_an_object_of_the_kind_lives_and_dies(http: Http, resource: ApiResource) -> None:
    path = path_of(resource)
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


async def test_a_deployment_has_no_replicas_yet(http: Http) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    created = await http.create(path, WORKLOAD | {"status": {"replicas": 7}})
    assert created["spec"]["replicas"] == 1
    assert created["status"] == {"replicas": 0}


async def test_objects_are_served_once_their_definition_is_created(http: Http) -> None:
    assert (await http.get(RACKS)).code == 404
    await http.create(DEFINITIONS, definition())
    created = await http.create(RACKS, rack(spec={"height": 42}))
    assert (created["apiVersion"], created["kind"]) == ("example.com/v1", "Rack")
    assert (await http.get(f"{RACKS}/r1")).body == created
    assert (await http.get("/apis/example.com/v1/racks")).body["kind"] == "RackList"
    patched = await http.patch(f"{RACKS}/r1", {"spec": {"height": 10}})
    assert patched.body["spec"] == {"height": 10}
    assert patched.body["metadata"]["generation"] == 2
    assert (await http.send("DELETE", f"{RACKS}/r1")).body["status"] == "Success"
    assert await http.names(RACKS) == []


async def test_a_watch_follows_custom_objects(http: Http) -> None:
    await http.create(DEFINITIONS, definition())
    async with http.watch(RACKS, labelSelector="row=a") as events:
        await http.create(RACKS, rack("other"))
        row_a = rack()
        row_a["metadata"]["labels"] = {"row": "a"}
        await http.create(RACKS, row_a)
        await http.send("DELETE", f"{RACKS}/r1")
        assert await events.take(2) == [("ADDED", "r1"), ("DELETED", "r1")]


async def test_a_definition_is_established_at_once(http: Http) -> None:
    created = await http.create(DEFINITIONS, definition())
    conditions = {c["type"]: c["status"] for c in created["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert created["spec"]["names"]["singular"] == "rack"
    assert created["status"]["storedVersions"] == ["v1"]


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
        await http.create(RACKS, rack())
        await http.send("DELETE", f"{DEFINITIONS}/racks.example.com")
        assert await events.take(2) == [("ADDED", "r1"), ("DELETED", "r1")]
    assert (await http.get(RACKS)).code == 404
    assert (await http.get("/apis/example.com/v1")).code == 404
    await http.create(DEFINITIONS, definition())
    assert await http.names(RACKS) == []


async def test_all_versions_show_the_same_objects(http: Http) -> None:
    old = version("v1beta1", storage=False)
    await http.create(DEFINITIONS, definition(old, version("v1")))
    await http.create(RACKS.replace("/v1/", "/v1beta1/"), rack(spec={"height": 1}))
    new = (await http.get(f"{RACKS}/r1")).body
    assert (new["apiVersion"], new["spec"]) == ("example.com/v1", {"height": 1})
    shown = (await http.get(f"{RACKS}/r1".replace("/v1/", "/v1beta1/"))).body
    assert shown["apiVersion"] == "example.com/v1beta1"
    (group,) = (g for g in (await http.get("/apis")).body["groups"] if g["name"] == "example.com")
    assert group["preferredVersion"]["version"] == "v1"


async def test_a_status_subresource_keeps_spec_and_status_apart(http: Http) -> None:
    await http.create(DEFINITIONS, definition(version(subresources={"status": {}})))
    created = await http.create(RACKS, rack(spec={"height": 1}, status={"used": 1}))
    assert "status" not in created
    change = {"status": {"used": 2}, "spec": {"height": 2}}
    written = (await http.patch(f"{RACKS}/r1/status", change)).body
    assert (written["spec"], written["status"]) == ({"height": 1}, {"used": 2})
    updated = (await http.patch(f"{RACKS}/r1", change | {"status": {"used": 3}})).body
    assert (updated["spec"], updated["status"]) == ({"height": 2}, {"used": 2})


async def test_a_cluster_wide_kind_has_no_namespaces(http: Http) -> None:
    await http.create(DEFINITIONS, definition(scope="Cluster"))
    created = await http.create("/apis/example.com/v1/racks", rack())
    assert "namespace" not in created["metadata"]
    assert (await http.get(RACKS)).code == 404


async def test_a_changed_definition_changes_what_is_served(http: Http) -> None:
    await http.create(DEFINITIONS, definition())
    await http.create(RACKS, rack())
    versions = [version(), version("v2", storage=False)]
    change = {"spec": {"versions": versions}}
    assert (await http.patch(f"{DEFINITIONS}/racks.example.com", change)).code == 200
    assert await http.names(RACKS.replace("/v1/", "/v2/")) == ["r1"]


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        ({"metadata": {"name": "rack.example.com"}}, 422, "metadata.name"),
        ({"spec": {"scope": "Everywhere"}}, 422, "spec.scope"),
        ({"spec": {"versions": []}}, 422, "spec.versions"),
        ({"spec": {"versions": [version(), version("v2")]}}, 422, "spec.versions"),
        ({"spec": {"versions": {}}}, 400, "versions"),
        ({"spec": {"names": {"plural": "racks"}}}, 400, "kind"),
        ({"spec": None}, 400, "spec"),
    ],
)
async def test_definitions_that_make_no_sense_are_refused(
    http: Http, change: dict[str, Any], code: int, named: str
) -> None:
    wrong = definition()
    for key, value in change.items():
        wrong[key] = wrong[key] | value if value else None
    reply = await http.send("POST", DEFINITIONS, wrong)
    assert reply.code == code, reply.text
    assert named in reply.message


async def test_a_definition_cannot_take_the_place_of_a_built_in_kind(http: Http) -> None:
    wrong = definition()
    wrong["metadata"]["name"] = "deviceclasses.resource.k8s.io"
    wrong["spec"] |= {"group": "resource.k8s.io"}
    wrong["spec"]["names"]["plural"] = "deviceclasses"
    reply = await http.send("POST", DEFINITIONS, wrong)
    assert reply.code == 422
    assert (await http.get("/apis/resource.k8s.io/v1/deviceclasses")).code == 200
