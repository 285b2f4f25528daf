"""Creating, reading, replacing and listing objects."""

import re

import pytest

from sandbox.apiserver import ApiServer
from sandbox.apiserver.kinds.registry import MOST_EVENTS
from tests.sandbox.apiserver.support import EVENTS, NODES, PODS, Http, labelled, node, pod


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


async def test_a_name_can_be_used_once(http: Http) -> None:
    await http.create(PODS, pod())
    reply = await http.send("POST", PODS, pod())
    assert (reply.code, reply.body["reason"]) == (409, "AlreadyExists")
    assert reply.message == 'pods "web" already exists'
    assert reply.body["details"] == {"name": "web", "kind": "pods"}


async def test_an_update_with_an_old_resource_version_conflicts(http: Http) -> None:
    first = await http.create(NODES, node())
    second = await http.send("PUT", f"{NODES}/n1", labelled(first, a="1"))
    assert second.code == 200
    reply = await http.send("PUT", f"{NODES}/n1", first)
    assert (reply.code, reply.body["reason"]) == (409, "Conflict")
    assert reply.message == (
        'Operation cannot be fulfilled on nodes "n1": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


async def test_an_update_that_changes_nothing_is_not_a_new_version(http: Http) -> None:
    created = await http.create(NODES, node())
    assert (await http.send("PUT", f"{NODES}/n1", created)).body == created


async def test_an_update_keeps_what_belongs_to_the_server(http: Http) -> None:
    created = (await http.create(NODES, node()))["metadata"]
    updated = (await http.send("PUT", f"{NODES}/n1", labelled(node(), a="1"))).body["metadata"]
    assert updated["uid"] == created["uid"]
    assert updated["creationTimestamp"] == created["creationTimestamp"]
    assert updated["labels"] == {"a": "1"}


async def test_only_the_status_subresource_writes_the_status(http: Http) -> None:
    created = await http.create(PODS, pod())
    running = created | {"status": created["status"] | {"phase": "Running"}}
    assert (await http.send("PUT", f"{PODS}/web", running)).body["status"]["phase"] == "Pending"
    changed = running | {"spec": created["spec"] | {"schedulerName": "other"}}
    updated = (await http.send("PUT", f"{PODS}/web/status", changed)).body
    assert updated["status"]["phase"] == "Running"
    assert updated["spec"] == created["spec"]


async def test_a_change_of_the_spec_counts_as_a_generation(http: Http) -> None:
    created = await http.create(NODES, node())
    cordoned = await http.send("PUT", f"{NODES}/n1", created | {"spec": {"unschedulable": True}})
    assert cordoned.body["metadata"]["generation"] == 2
    labelled_only = await http.send("PUT", f"{NODES}/n1", labelled(cordoned.body, a="1"))
    assert labelled_only.body["metadata"]["generation"] == 2


async def test_a_dry_run_changes_nothing(http: Http) -> None:
    reply = await http.send("POST", f"{PODS}?dryRun=All", pod())
    assert (reply.code, reply.body["metadata"]["name"]) == (201, "web")
    assert await http.names(PODS) == []
    await http.create(PODS, pod())
    assert (await http.send("DELETE", f"{PODS}/web?dryRun=All")).code == 200
    assert (await http.send("PUT", f"{PODS}/web?dryRun=All", labelled(pod(), a="1"))).code == 200
    assert "labels" not in (await http.get(f"{PODS}/web")).body["metadata"]


async def test_pods_need_a_namespace_that_exists(http: Http) -> None:
    path = "/api/v1/namespaces/team/pods"
    reply = await http.send("POST", path, pod())
    assert (reply.code, reply.message) == (404, 'namespaces "team" not found')
    await http.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    assert (await http.create(path, pod()))["metadata"]["namespace"] == "team"


async def test_the_usual_namespaces_and_priority_classes_are_there(http: Http) -> None:
    assert {"default", "kube-system"} <= set(await http.names("/api/v1/namespaces"))
    classes = (await http.get("/apis/scheduling.k8s.io/v1/priorityclasses")).body["items"]
    values = {each["metadata"]["name"]: each["value"] for each in classes}
    assert values == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }


async def test_leases_can_be_taken_and_renewed(http: Http) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    spec = {"holderIdentity": "a", "renewTime": "2026-01-01T00:00:00.000000Z"}
    created = await http.create(path, {"metadata": {"name": "gateway"}, "spec": spec})
    assert created["apiVersion"] == "coordination.k8s.io/v1"
    taken = created | {"spec": spec | {"holderIdentity": "b"}}
    assert (await http.send("PUT", f"{path}/gateway", taken)).code == 200
    late = await http.send("PUT", f"{path}/gateway", created)
    assert late.code == 409
    assert late.message.startswith(
        'Operation cannot be fulfilled on leases.coordination.k8s.io "gateway"'
    )


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


async def test_lists_are_in_the_order_of_namespace_and_name(http: Http) -> None:
    await http.create("/api/v1/namespaces/kube-system/pods", pod("a"))
    for name in ("c", "b"):
        await http.create(PODS, pod(name))
    assert await http.names("/api/v1/pods") == ["b", "c", "a"]
    assert await http.names(PODS) == ["b", "c"]
    assert (await http.get(PODS)).body["kind"] == "PodList"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=web", ["a", "b"]),
        ("app=web,tier!=back", ["a"]),
        ("tier", ["a", "b"]),
        ("!app", ["c"]),
        ("tier in (front,back)", ["a", "b"]),
        ("app notin (web)", ["c"]),
    ],
)
async def test_label_selectors(http: Http, selector: str, expected: list[str]) -> None:
    await http.create(PODS, labelled(pod("a"), app="web", tier="front"))
    await http.create(PODS, labelled(pod("b"), app="web", tier="back"))
    await http.create(PODS, pod("c"))
    assert await http.names(f"{PODS}?labelSelector={selector}") == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=n1", ["b"]),
        ("spec.nodeName=", ["a"]),
        ("spec.nodeName!=", ["b"]),
        ("metadata.name=a", ["a"]),
        ("metadata.namespace=default,spec.schedulerName=default-scheduler", ["a", "b"]),
        ("status.phase!=Pending", []),
        ("spec.hostNetwork=false", ["a", "b"]),
    ],
)
async def test_field_selectors(http: Http, selector: str, expected: list[str]) -> None:
    await http.create(PODS, pod("a"))
    await http.create(PODS, pod("b", nodeName="n1"))
    assert await http.names(f"{PODS}?fieldSelector={selector}") == expected


async def test_nodes_can_be_selected_by_cordon(http: Http) -> None:
    await http.create(NODES, node("n1"))
    await http.create(NODES, node("n2") | {"spec": {"unschedulable": True}})
    assert await http.names(f"{NODES}?fieldSelector=spec.unschedulable=true") == ["n2"]
    assert await http.names(f"{NODES}?fieldSelector=spec.unschedulable=false") == ["n1"]


@pytest.mark.parametrize(
    "query", ["labelSelector=a+in", "fieldSelector=a", "fieldSelector=spec.foo=1", "limit=x"]
)
async def test_selectors_that_make_no_sense_are_bad_requests(http: Http, query: str) -> None:
    reply = await http.get(f"{PODS}?{query}")
    assert (reply.code, reply.body["reason"]) == (400, "BadRequest")
    assert (
        await http.get(f"{PODS}?watch=1&{query.replace('limit', 'resourceVersion')}")
    ).code == 400


async def test_an_unsupported_field_is_named(http: Http) -> None:
    reply = await http.get(f"{EVENTS}?fieldSelector=spec.foo=1")
    assert reply.message == "field label not supported: spec.foo"


async def test_pages_show_one_moment(http: Http) -> None:
    for i in range(5):
        await http.create(NODES, node(f"n{i}"))
    first = (await http.get(f"{NODES}?limit=2")).body
    token = first["metadata"]["continue"]
    assert first["metadata"]["remainingItemCount"] == 3
    await http.send("DELETE", f"{NODES}/n2")
    await http.create(NODES, node("n9"))
    second = (await http.get(f"{NODES}?limit=2&continue={token}")).body
    third = (await http.get(f"{NODES}?continue={second['metadata']['continue']}")).body
    names = [i["metadata"]["name"] for page in (first, second, third) for i in page["items"]]
    assert names == ["n0", "n1", "n2", "n3", "n4"]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1
    assert "continue" not in third["metadata"]


async def test_a_watch_from_the_version_of_a_page_sees_what_came_after(http: Http) -> None:
    for i in range(2):
        await http.create(NODES, node(f"n{i}"))
    page = (await http.get(f"{NODES}?limit=1")).body["metadata"]
    await http.create(NODES, node("n9"))
    async with http.watch(NODES, resourceVersion=page["resourceVersion"]) as events:
        assert await events.take(1) == [("ADDED", "n9")]


async def test_tokens_that_are_not_known_have_expired(http: Http) -> None:
    reply = await http.get(f"{NODES}?continue=abc")
    assert (reply.code, reply.body["reason"]) == (410, "Expired")


async def test_a_token_is_for_its_own_list(http: Http) -> None:
    for i in range(2):
        await http.create(NODES, node(f"n{i}"))
    token = (await http.get(f"{NODES}?limit=1")).body["metadata"]["continue"]
    assert (await http.get(f"{PODS}?continue={token}")).code == 400
