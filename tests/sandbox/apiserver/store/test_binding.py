"""Binding: the order of its checks, their codes and texts, and what it writes."""

import asyncio

import aiohttp
import pytest

from sandbox.apiserver import ApiServer, Settings
from tests.sandbox.apiserver.support import NODES, PODS, Http, binding, finalized, node, pod

LEGACY = "/api/v1/namespaces/default/bindings"
PREFIX = 'Operation cannot be fulfilled on pods/binding "web": '


async def test_a_bound_pod_has_its_node_and_says_so(http: Http) -> None:
    await http.create(PODS, pod())
    reply = await http.bind("web", "n1")
    assert (reply.code, reply.body["status"]) == (201, "Success")
    bound = (await http.get(f"{PODS}/web")).body
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["status"]["phase"] == "Pending"
    condition = bound["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


async def test_annotations_and_labels_of_the_binding_are_merged(http: Http) -> None:
    created = pod()
    created["metadata"] |= {"annotations": {"a": "1", "b": "1"}, "labels": {"x": "1"}}
    await http.create(PODS, created)
    await http.bind("web", "n1", annotations={"b": "2", "c": "2"}, labels={"y": "2"})
    metadata = (await http.get(f"{PODS}/web")).body["metadata"]
    assert metadata["annotations"] == {"a": "1", "b": "2", "c": "2"}
    assert metadata["labels"] == {"x": "1", "y": "2"}


async def test_binding_clears_the_nomination_and_replaces_the_condition(http: Http) -> None:
    await http.create(PODS, pod())
    failed = [{"type": "PodScheduled", "status": "False"}, {"type": "Other", "status": "True"}]
    status = {"status": {"nominatedNodeName": "n2", "conditions": failed}}
    assert (await http.patch(f"{PODS}/web/status", status)).code == 200
    await http.bind("web", "n1")
    bound = (await http.get(f"{PODS}/web")).body["status"]
    assert "nominatedNodeName" not in bound
    conditions = {each["type"]: each["status"] for each in bound["conditions"]}
    assert conditions == {"PodScheduled": "True", "Other": "True"}


async def test_a_binding_of_another_name_is_a_bad_request(http: Http) -> None:
    await http.create(PODS, pod())
    reply = await http.send("POST", f"{PODS}/web/binding", binding("other", "n1"))
    assert reply.code == 400
    assert reply.message == "name in URL does not match name in Binding object"


async def test_a_target_that_is_no_node_is_refused(http: Http) -> None:
    wrong_kind = binding("web", "n1") | {"target": {"kind": "Pod", "name": "n1"}}
    reply = await http.send("POST", f"{PODS}/web/binding", wrong_kind)
    assert reply.code == 500
    assert reply.message.startswith('target.kind: Unsupported value: "Pod"')
    no_name = binding("web", "n1") | {"target": {"kind": "Node"}}
    reply = await http.send("POST", f"{PODS}/web/binding", no_name)
    assert (reply.code, reply.message) == (500, "target.name: Required value")


async def test_a_body_that_is_no_binding_is_a_bad_request(http: Http) -> None:
    await http.create(PODS, pod())
    assert (await http.send("POST", f"{PODS}/web/binding", pod())).code == 400


async def test_a_pod_that_is_not_there_cannot_be_bound(http: Http) -> None:
    reply = await http.bind("web", "n1")
    assert (reply.code, reply.body["reason"]) == (404, "NotFound")
    assert reply.message == 'pods "web" not found'


async def test_the_uid_of_the_binding_is_a_precondition(http: Http) -> None:
    uid = (await http.create(PODS, pod()))["metadata"]["uid"]
    reply = await http.bind("web", "n1", uid="other")
    assert reply.code == 409
    assert reply.message.startswith('Operation cannot be fulfilled on pods "web": StorageError:')
    assert f"UID in precondition: other, UID in object meta: {uid}" in reply.message
    assert (await http.bind("web", "n1", uid=uid)).code == 201


async def test_a_pod_is_bound_once_even_to_the_same_node(http: Http) -> None:
    await http.create(PODS, pod())
    await http.bind("web", "n1")
    for target in ("n1", "n2"):
        reply = await http.bind("web", target)
        assert (reply.code, reply.body["reason"]) == (409, "Conflict")
        assert reply.message == f'{PREFIX}pod web is already assigned to node "n1"'


async def test_a_pod_that_is_being_deleted_is_not_bound(http: Http) -> None:
    await http.create(PODS, finalized(pod(nodeName="n1"), "example.com/hold"))
    await http.send("DELETE", f"{PODS}/web")
    reply = await http.bind("web", "n1")
    assert reply.code == 409
    # Deletion is noticed before the node that is already set.
    assert reply.message == f"{PREFIX}pod web is being deleted, cannot be assigned to a host"


async def test_a_gated_pod_is_not_bound(http: Http) -> None:
    await http.create(PODS, pod(schedulingGates=[{"name": "a"}]))
    reply = await http.bind("web", "n1")
    assert reply.code == 409
    assert reply.message == f"{PREFIX}pod web has non-empty .spec.schedulingGates"


async def test_the_legacy_route_binds_but_ignores_the_uid(http: Http) -> None:
    await http.create(PODS, pod())
    reply = await http.send("POST", LEGACY, binding("web", "n1", uid="other"))
    assert reply.code == 201
    assert (await http.get(f"{PODS}/web")).body["spec"]["nodeName"] == "n1"
    assert (await http.send("POST", LEGACY, binding("none", "n1"))).code == 404


async def test_bindings_can_only_be_created(http: Http) -> None:
    await http.create(PODS, pod())
    assert (await http.get(LEGACY)).code == 405
    assert (await http.get(f"{PODS}/web/binding")).code == 405


async def test_a_dry_run_binds_nothing(http: Http) -> None:
    await http.create(PODS, pod())
    path = f"{PODS}/web/binding?dryRun=All"
    assert (await http.send("POST", path, binding("web", "n1"))).code == 201
    assert "nodeName" not in (await http.get(f"{PODS}/web")).body["spec"]


async def test_of_many_bindings_at_once_one_succeeds(http: Http) -> None:
    await http.create(PODS, pod())
    replies = await asyncio.gather(*(http.bind("web", f"n{i}") for i in range(10)))
    assert sorted(reply.code for reply in replies) == [201] + [409] * 9


@pytest.mark.parametrize("bound_at_creation", [True, False])
async def test_bound_pods_run_if_asked_to(bound_at_creation: bool) -> None:
    settings = Settings(run_bound_pods=True, run_delay_seconds=0.01)
    async with ApiServer(settings) as api, aiohttp.ClientSession(api.url) as session:
        http = Http(session)
        await http.create(NODES, node("n1"))
        created = await http.create(PODS, pod(**({"nodeName": "n1"} if bound_at_creation else {})))
        version = created["metadata"]["resourceVersion"]
        async with http.watch(PODS, resourceVersion=version) as events:
            if not bound_at_creation:
                await http.bind("web", "n1")
                assert (await events.next())["object"]["status"]["phase"] == "Pending"
            status = (await events.next())["object"]["status"]
    assert status["phase"] == "Running"
    assert status["startTime"]
    assert status["containerStatuses"][0]["ready"]


async def test_a_pod_that_is_bound_to_no_node_does_not_run() -> None:
    settings = Settings(run_bound_pods=True, run_delay_seconds=0.0)
    async with ApiServer(settings) as api, aiohttp.ClientSession(api.url) as session:
        http = Http(session)
        await http.create(NODES, node("n2"))
        for name, place in (("first", "n1"), ("second", "n2")):
            await http.create(PODS, pod(name, nodeName=place))
        await until(api, "second", "Running")
        assert api.cluster.store.objects("/pods")[0]["status"]["phase"] == "Pending"


async def until(api: ApiServer, name: str, phase: str) -> None:
    """Wait until a pod has a phase."""
    pods = api.cluster.store.collection("/pods")
    async with asyncio.timeout(5):
        while (item := pods.get("default", name)) and item.object["status"]["phase"] != phase:
            await pods.changed.wait(5)
