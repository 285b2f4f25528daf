"""Custom resource definitions: their objects are served as long as they exist."""

from typing import Any

import pytest

from tests.sandbox.apiserver.resources.definitions import (
    DEFINITIONS,
    RACKS,
    definition,
    rack,
    version,
)
from tests.sandbox.apiserver.support import Http

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


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
    schemas = (await http.get("/openapi/v3/apis/example.com/v1")).body["components"]["schemas"]
    assert "v1.Rack" in schemas


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


async def test_its_columns_and_selectable_fields_are_those_of_the_definition(http: Http) -> None:
    columns = [
        {"name": "Height", "type": "integer", "jsonPath": ".spec.height"},
        {"name": "Room", "type": "string", "jsonPath": ".spec.room", "priority": 1},
    ]
    fields = [{"jsonPath": ".spec.room"}]
    with_columns = version(additionalPrinterColumns=columns, selectableFields=fields)
    await http.create(DEFINITIONS, definition(with_columns))
    await http.create(RACKS, rack(spec={"height": 42, "room": "a"}))
    await http.create(RACKS, rack("r2", spec={"room": "b"}))
    table = (await http.get(RACKS, accept=TABLE)).body
    heads = [(c["name"], c["priority"]) for c in table["columnDefinitions"]]
    assert heads == [("Name", 0), ("Height", 0), ("Room", 1), ("Age", 0)]
    assert table["rows"][0]["cells"][:3] == ["r1", 42, "a"]
    assert await http.names(f"{RACKS}?fieldSelector=spec.room=b") == ["r2"]
    assert (await http.get(f"{RACKS}?fieldSelector=spec.height=1")).code == 400


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
        ({"spec": {"group": "pods"}}, 422, "spec.group"),
        ({"spec": {"scope": "Everywhere"}}, 422, "spec.scope"),
        ({"spec": {"versions": []}}, 422, "spec.versions"),
        ({"spec": {"versions": [version(), version("v2")]}}, 422, "spec.versions"),
        ({"spec": {"versions": {}}}, 422, "versions"),
        ({"spec": {"names": {"plural": "racks"}}}, 422, "kind"),
        ({"spec": None}, 422, "spec"),
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
