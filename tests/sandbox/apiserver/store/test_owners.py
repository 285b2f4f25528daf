"""Garbage collection: what becomes of objects whose owners are deleted."""

from typing import Any

import pytest

from tests.sandbox.apiserver.resources.test_any_kind import WORKLOAD
from tests.sandbox.apiserver.support import PODS, Http, Object, finalized, pod

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


@pytest.mark.parametrize(
    "options", [{"propagationPolicy": "Orphan"}, {"orphanDependents": True}], ids=str
)
async def test_orphans_stay_without_the_reference(http: Http, options: Any) -> None:
    await http.create(PODS, owned(pod("a"), await owner(http)))
    await http.send("DELETE", f"{MAPS}/owner", options)
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


async def test_what_is_created_for_a_deleted_owner_is_deleted_at_once(http: Http) -> None:
    gone = await owner(http)
    await http.send("DELETE", f"{MAPS}/owner")
    await http.create(PODS, owned(pod("late"), gone))
    assert await http.names(PODS) == []
    elsewhere: Object = gone | {"metadata": gone["metadata"] | {"uid": "of-another-cluster"}}
    await http.create(PODS, owned(pod("dumped"), elsewhere))
    assert await http.names(PODS) == ["dumped"]


async def test_owners_of_each_other_go_together(http: Http) -> None:
    a = await owner(http, "a")
    b = await http.create(MAPS, owned({"metadata": {"name": "b"}}, a))
    await http.send("PUT", f"{MAPS}/a", owned({"metadata": {"name": "a"}}, b))
    reply = await http.send("DELETE", f"{MAPS}/a", {"propagationPolicy": "Foreground"})
    assert reply.code == 200
    assert await http.names(MAPS) == []


async def test_an_unknown_policy_is_refused(http: Http) -> None:
    await owner(http)
    reply = await http.send("DELETE", f"{MAPS}/owner", {"propagationPolicy": "Sideways"})
    assert reply.code == 400
    assert "Sideways" in reply.message or "propagationPolicy" in reply.message


async def test_a_namespace_with_owners_and_dependents_goes_whole(http: Http) -> None:
    await http.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    maps = MAPS.replace("default", "team")
    top = await http.create(maps, {"metadata": {"name": "a"}})
    await http.create(maps, owned({"metadata": {"name": "b"}}, top))
    assert (await http.send("DELETE", "/api/v1/namespaces/team")).code == 200
    assert (await http.get("/api/v1/namespaces/team")).code == 404
