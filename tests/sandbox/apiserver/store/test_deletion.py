"""Deleting: finalizers, preconditions, collections, namespaces, and what has lost its owners."""

from sandbox.apiserver import ApiServer
from sandbox.apiserver.kinds.registry import MOST_EVENTS
from tests.sandbox.apiserver.support import EVENTS, PODS, Http, Object, finalized, pod
from tests.sandbox.apiserver.test_any_kind import WORKLOAD

NAMESPACES = "/api/v1/namespaces"


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


async def test_an_eviction_deletes_the_pod(http: Http) -> None:
    await http.create(PODS, pod(nodeName="n1"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    assert (await http.send("POST", f"{PODS}/web/eviction", eviction)).code == 201
    assert await http.names(PODS) == []
    assert (await http.send("POST", f"{PODS}/web/eviction", eviction)).code == 404


async def test_a_namespace_goes_with_everything_in_it(http: Http) -> None:
    await http.create(NAMESPACES, {"metadata": {"name": "team"}})
    pods = f"{NAMESPACES}/team/pods"
    owner = await http.create(f"{NAMESPACES}/team/configmaps", {"metadata": {"name": "owner"}})
    await http.create(pods, owned(pod("a"), owner))
    await http.create(pods, finalized(pod("b"), "example.com/a"))
    await http.send("DELETE", f"{NAMESPACES}/team")
    assert (await http.get(f"{NAMESPACES}/team")).body["status"]["phase"] == "Terminating"
    assert await http.names(pods) == ["b"]
    refused = await http.send("POST", pods, pod("c"))
    assert refused.code == 403
    assert "because it is being terminated" in refused.message
    await http.patch(f"{pods}/b", {"metadata": {"finalizers": None}})
    assert (await http.get(f"{NAMESPACES}/team")).code == 404


async def test_dependents_go_with_their_owner_over_generations(http: Http) -> None:
    top = await owner(http)
    replica_set = await http.create(SETS, owned(WORKLOAD, top))
    await http.create(PODS, owned(pod("a"), replica_set))
    await http.create(PODS, pod("other"))
    await http.send("DELETE", f"{MAPS}/owner")
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


async def test_a_namespace_keeps_its_newest_events(api: ApiServer, http: Http) -> None:
    target = api.cluster.target(EVENTS)
    for number in range(MOST_EVENTS + 1):
        about = {"kind": "Pod", "name": "web", "namespace": "default"}
        event = {"metadata": {"name": f"e-{number}"}, "involvedObject": about, "reason": "Tested"}
        api.cluster.create(target, {"apiVersion": "v1", "kind": "Event", **event})
    names = await http.names(EVENTS)
    assert len(names) == MOST_EVENTS
    assert "e-0" not in names
