"""Creating, reading, replacing and listing objects."""

import re

from sandbox.apiserver import ApiServer
from sandbox.apiserver.kinds.registry import MOST_EVENTS
from tests.sandbox.apiserver.support import NODES, PODS, Http, labelled, node, pod


async def test_a_created_object_gets_its_metadata_from_the_server(http: Http) -> None:
    created = await http.create(PODS, pod())
    metadata = created["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["generation"] == 1
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert (await http.get(f"{PODS}/web")).body == created


async def test_every_write_gives_a_larger_resource_version(http: Http) -> None:
    created = [await http.create(NODES, node(f"n{i}")) for i in range(3)]
    versions = [int(each["metadata"]["resourceVersion"]) for each in created]
    assert versions == sorted(set(versions))
    listed = (await http.get(NODES)).body["metadata"]["resourceVersion"]
    assert int(listed) >= versions[-1]


async def test_the_metadata_of_a_dump_is_replaced(http: Http) -> None:
    dumped = node()
    dumped["metadata"] |= {"uid": "old", "resourceVersion": "7", "managedFields": [{}]}
    metadata = (await http.create(NODES, dumped))["metadata"]
    assert metadata["uid"] != "old"
    assert metadata["resourceVersion"] != "7"
    assert "managedFields" not in metadata


async def test_generate_name_makes_different_names(http: Http) -> None:
    template = pod() | {"metadata": {"generateName": "web-"}}
    names = {(await http.create(PODS, template))["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(re.fullmatch(r"web-[a-z0-9]{5}", name) for name in names)


async def test_an_update_that_changes_nothing_is_not_a_new_version(http: Http) -> None:
    created = await http.create(NODES, node())
    assert (await http.send("PUT", f"{NODES}/n1", created)).body == created


async def test_an_update_keeps_what_belongs_to_the_server(http: Http) -> None:
    created = (await http.create(NODES, node()))["metadata"]
    updated = (await http.send("PUT", f"{NODES}/n1", labelled(node(), a="1"))).body["metadata"]
    assert updated["uid"] == created["uid"]
    assert updated["creationTimestamp"] == created["creationTimestamp"]
    assert updated["labels"] == {"a": "1"}


async def test_a_change_of_the_spec_counts_as_a_generation(http: Http) -> None:
    created = await http.create(NODES, node())
    cordoned = await http.send("PUT", f"{NODES}/n1", created | {"spec": {"unschedulable": True}})
    assert cordoned.body["metadata"]["generation"] == 2
    labelled_only = await http.send("PUT", f"{NODES}/n1", labelled(cordoned.body, a="1"))
    assert labelled_only.body["metadata"]["generation"] == 2


async def test_a_namespace_keeps_its_newest_events(api: ApiServer, http: Http) -> None:
    path = "/api/v1/namespaces/default/events"
    target = api.cluster.target(path)
    for number in range(MOST_EVENTS + 1):
        about = {"kind": "Pod", "name": "web", "namespace": "default"}
        event = {"metadata": {"name": f"e-{number}"}, "involvedObject": about, "reason": "Tested"}
        api.cluster.create(target, {"apiVersion": "v1", "kind": "Event", **event})
    names = await http.names(path)
    assert len(names) == MOST_EVENTS
    assert "e-0" not in names


async def test_a_token_is_for_its_own_list(http: Http) -> None:
    for i in range(2):
        await http.create(NODES, node(f"n{i}"))
    token = (await http.get(f"{NODES}?limit=1")).body["metadata"]["continue"]
    assert (await http.get(f"{PODS}?continue={token}")).code == 400
