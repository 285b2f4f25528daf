"""Deleting: finalizers, preconditions, collections and namespaces."""

from tests.sandbox.apiserver.support import NODES, PODS, Http, finalized, labelled, node, pod

NAMESPACES = "/api/v1/namespaces"


async def test_a_pod_is_gone_at_once(http: Http) -> None:
    for spec in ({}, {"nodeName": "n1"}):
        await http.create(PODS, pod(**spec))
        reply = await http.send("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 30})
        assert (reply.code, reply.body["kind"]) == (200, "Pod")
        assert (await http.get(f"{PODS}/web")).code == 404


async def test_other_objects_answer_with_a_status(http: Http) -> None:
    created = await http.create(NODES, node())
    reply = await http.send("DELETE", f"{NODES}/n1")
    assert (reply.code, reply.body["status"]) == (200, "Success")
    assert reply.body["details"]["uid"] == created["metadata"]["uid"]


async def test_finalizers_hold_an_object_until_they_are_gone(http: Http) -> None:
    await http.create(PODS, finalized(pod(), "example.com/a"))
    marked = (await http.send("DELETE", f"{PODS}/web")).body
    stamp = marked["metadata"]["deletionTimestamp"]
    assert stamp
    again = await http.send("DELETE", f"{PODS}/web")
    assert again.body["metadata"]["deletionTimestamp"] == stamp
    since = again.body["metadata"]["resourceVersion"]
    async with http.watch(PODS, resourceVersion=since) as events:
        reply = await http.patch(f"{PODS}/web", {"metadata": {"finalizers": None}})
        assert reply.code == 200
        assert (await events.take(2))[1] == ("DELETED", "web")
    assert await http.names(PODS) == []


async def test_the_deletion_timestamp_cannot_be_taken_back(http: Http) -> None:
    created = await http.create(PODS, finalized(pod(), "example.com/a"))
    await http.send("DELETE", f"{PODS}/web")
    created["metadata"].pop("resourceVersion")
    updated = (await http.send("PUT", f"{PODS}/web", created)).body
    assert updated["metadata"]["deletionTimestamp"]


async def test_preconditions_of_a_deletion_must_hold(http: Http) -> None:
    created = (await http.create(PODS, pod()))["metadata"]
    for wrong in ({"uid": "other"}, {"resourceVersion": "1"}):
        reply = await http.send("DELETE", f"{PODS}/web", {"preconditions": wrong})
        assert (reply.code, reply.body["reason"]) == (409, "Conflict")
        assert "Precondition failed" in reply.message
    right = {"uid": created["uid"], "resourceVersion": created["resourceVersion"]}
    assert (await http.send("DELETE", f"{PODS}/web", {"preconditions": right})).code == 200


async def test_a_collection_can_be_deleted_by_selector(http: Http) -> None:
    await http.create(PODS, labelled(pod("a"), app="web"))
    await http.create(PODS, labelled(pod("b"), app="web"))
    await http.create(PODS, pod("c"))
    reply = await http.send("DELETE", f"{PODS}?labelSelector=app%3Dweb")
    assert [item["metadata"]["name"] for item in reply.body["items"]] == ["a", "b"]
    assert await http.names(PODS) == ["c"]


async def test_an_eviction_deletes_the_pod(http: Http) -> None:
    await http.create(PODS, pod(nodeName="n1"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    assert (await http.send("POST", f"{PODS}/web/eviction", eviction)).code == 201
    assert await http.names(PODS) == []
    assert (await http.send("POST", f"{PODS}/web/eviction", eviction)).code == 404


async def test_a_namespace_goes_with_everything_in_it(http: Http) -> None:
    await http.create(NAMESPACES, {"metadata": {"name": "team"}})
    pods = f"{NAMESPACES}/team/pods"
    await http.create(pods, pod("a"))
    await http.create(pods, finalized(pod("b"), "example.com/a"))
    await http.send("DELETE", f"{NAMESPACES}/team")
    assert (await http.get(f"{NAMESPACES}/team")).body["status"]["phase"] == "Terminating"
    assert await http.names(pods) == ["b"]
    refused = await http.send("POST", pods, pod("c"))
    assert refused.code == 403
    assert "because it is being terminated" in refused.message
    await http.patch(f"{pods}/b", {"metadata": {"finalizers": None}})
    assert (await http.get(f"{NAMESPACES}/team")).code == 404


async def test_the_namespaces_of_the_cluster_stay(http: Http) -> None:
    for name in ("default", "kube-system"):
        assert (await http.send("DELETE", f"{NAMESPACES}/{name}")).code == 403
