"""StatefulSets, volumes and claims: objects that nobody acts on."""

import msgspec

from tests.sandbox.apiserver.support import Http

SETS = "/apis/apps/v1/namespaces/default/statefulsets"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def stateful_set(name: str = "db") -> dict[str, object]:
    templates = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    spec = {
        "volumeClaimTemplates": templates,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}},
    }
    return {"metadata": {"name": name}, "spec": spec}


async def test_a_stateful_set_gets_what_every_one_has(http: Http) -> None:
    created = await http.create(SETS, stateful_set())
    assert (created["apiVersion"], created["kind"]) == ("apps/v1", "StatefulSet")
    assert created["metadata"]["generation"] == 1
    assert created["spec"]["replicas"] == 1
    assert created["status"] == {"replicas": 0}


async def test_they_are_watched_and_deleted_like_others(http: Http) -> None:
    await http.create(CLAIMS, {"metadata": {"name": "data-db-0"}, "spec": {}})
    listed = (await http.get("/api/v1/persistentvolumeclaims")).body
    assert [each["status"] for each in listed["items"]] == [{"phase": "Pending"}]
    version = listed["metadata"]["resourceVersion"]
    query = {"watch": "1", "resourceVersion": version}
    async with http.session.get(CLAIMS, params=query) as response:
        await http.send("DELETE", f"{CLAIMS}/data-db-0")
        event = msgspec.json.decode(await response.content.readline())
    assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", "data-db-0")
