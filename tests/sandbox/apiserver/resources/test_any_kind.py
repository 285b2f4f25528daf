"""Every built-in kind is stored, listed, watched, patched and deleted alike."""

import base64

import pytest

from sandbox.apiserver.resources.resource import Resource
from sandbox.apiserver.resources.table import BUILT_IN
from tests.sandbox.apiserver.resources.definitions import definition
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


def path_of(resource: Resource) -> str:
    prefix = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    space = "/namespaces/default" if resource.namespaced else ""
    return f"{prefix}{space}/{resource.plural}"


@pytest.mark.parametrize("resource", STORED, ids=lambda row: f"{row.group}/{row.plural}")
async def test_an_object_of_the_kind_lives_and_dies(http: Http, resource: Resource) -> None:
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


async def test_config_maps_keep_their_data(http: Http) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    await http.create(path, {"metadata": {"name": "prices"}, "data": {"gpu": "3", "cpu": "1"}})
    changed = await http.patch(f"{path}/prices", {"data": {"gpu": "4", "cpu": None}})
    assert changed.body["data"] == {"gpu": "4"}


async def test_secrets_are_written_as_text_and_read_in_base64(http: Http) -> None:
    path = "/api/v1/namespaces/default/secrets"
    created = await http.create(path, {"metadata": {"name": "s"}, "stringData": {"token": "abc"}})
    assert created["data"] == {"token": base64.b64encode(b"abc").decode()}
    assert "stringData" not in created


async def test_a_deployment_has_no_replicas_yet(http: Http) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    created = await http.create(path, WORKLOAD | {"status": {"replicas": 7}})
    assert created["spec"]["replicas"] == 1
    assert created["status"] == {"replicas": 0}
