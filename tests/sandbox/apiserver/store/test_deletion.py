"""Deleting: finalizers, preconditions, collections, namespaces, and what has lost its owners."""

import pytest

from tests.sandbox.apiserver.resources.test_any_kind import WORKLOAD
from tests.sandbox.apiserver.support import PODS, Http, Object, finalized, pod

NAMESPACES = "/api/v1/namespaces"


async def test_a_pod_is_gone_at_once(http: Http) -> None:
    for spec in ({}, {"nodeName": "n1"}):
        await http.create(PODS, pod(**spec))
        reply = await http.send("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 30})
        assert (reply.code, reply.body["kind"]) == (200, "Pod")
        assert (await http.get(f"{PODS}/web")).code == 404


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


SETS = "/apis/apps/v1/namespaces/default/replicasets"
MAPS = "/api/v1/namespaces/default/configmaps"


def owned(obj: Object, *owners: Object) -> Object:
    references = [
        {key: owner[key] for key in ("apiVersion", "kind")}
        | {key: owner["metadata"][key] for key in ("name", "uid")}
        for owner in owners
    ]
    return obj | {"metadata": obj["metadata"] | {"ownerReferences": references}}


async def owner(http: Http, name: str = "owner") -> Object:
    return await http.create(MAPS, {"metadata": {"name": name}})


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_dependents_go_with_their_owner_over_generations(http: Http, policy: str) -> None:
    top = await owner(http)
    replica_set = await http.create(SETS, owned(WORKLOAD, top))
    await http.create(PODS, owned(pod("a"), replica_set))
    await http.create(PODS, pod("other"))
    await http.send("DELETE", f"{MAPS}/owner", {"propagationPolicy": policy})
    assert await http.names(SETS) == []
    assert await http.names(PODS) == ["other"]


async def test_orphans_stay_without_the_reference(http: Http) -> None:
    await http.create(PODS, owned(pod("a"), await owner(http)))
    await http.send("DELETE", f"{MAPS}/owner", {"propagationPolicy": "Orphan"})
    assert "ownerReferences" not in (await http.get(f"{PODS}/a")).body["metadata"]
    assert await http.names(MAPS) == []


async def test_a_dependent_stays_while_another_owner_lives(http: Http) -> None:
    first, second = await owner(http, "first"), await owner(http, "second")
    await http.create(PODS, owned(pod("a"), first, second))
    await http.send("DELETE", f"{MAPS}/first")
    (left,) = (await http.get(f"{PODS}/a")).body["metadata"]["ownerReferences"]
    assert left["name"] == "second"
    await http.send("DELETE", f"{MAPS}/second")
    assert await http.names(PODS) == []


async def test_an_owner_with_finalizers_keeps_its_dependents_until_it_is_gone(http: Http) -> None:
    body = finalized({"metadata": {"name": "owner"}}, "example.com/a")
    await http.create(PODS, owned(pod("a"), await http.create(MAPS, body)))
    await http.send("DELETE", f"{MAPS}/owner")
    assert await http.names(PODS) == ["a"]
    await http.patch(f"{MAPS}/owner", {"metadata": {"finalizers": None}})
    assert await http.names(PODS) == []


async def test_owners_of_each_other_go_together(http: Http) -> None:
    a = await owner(http, "a")
    b = await http.create(MAPS, owned({"metadata": {"name": "b"}}, a))
    await http.send("PUT", f"{MAPS}/a", owned({"metadata": {"name": "a"}}, b))
    reply = await http.send("DELETE", f"{MAPS}/a", {"propagationPolicy": "Foreground"})
    assert reply.code == 200
    assert await http.names(MAPS) == []


async def test_a_namespace_with_owners_and_dependents_goes_whole(http: Http) -> None:
    await http.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    maps = MAPS.replace("default", "team")
    top = await http.create(maps, {"metadata": {"name": "a"}})
    await http.create(maps, owned({"metadata": {"name": "b"}}, top))
    assert (await http.send("DELETE", "/api/v1/namespaces/team")).code == 200
    assert (await http.get("/api/v1/namespaces/team")).code == 404
