"""What goes over the wire, against recordings of a real kube-scheduler."""

import json

import pytest

from sandbox.scheduler.cache import KnownPod
from sandbox.scheduler.config import ExtenderConfig
from sandbox.scheduler.extenders.client import Extender, bind_body, filter_body, preempt_body
from sandbox.scheduler.extenders.gojson import node_json, pod_json
from tests.sandbox.scheduler.support import World, known_pod, recordings
from tools.waiting import until


@pytest.mark.parametrize("mode", ["names", "nodes"])
def test_filter_and_prioritize_requests_are_written_as_recorded(mode: str) -> None:
    compared = 0
    for verb, _, body in recordings(mode):
        if verb in ("filter", "prioritize"):
            given = json.loads(body)
            nodes = dict.fromkeys(given["NodeNames"] or (), b"")
            items = (given["Nodes"] or {"items": []})["items"]
            nodes |= {node["metadata"]["name"]: node_json(node) for node in items}
            written = filter_body(pod_json(given["Pod"]), nodes, names_only=mode == "names")
            assert written.decode() == body
            compared += 1
    assert compared > 15


def test_bind_requests_are_written_as_recorded() -> None:
    for verb, _, body in recordings("names"):
        if verb == "bind":
            given = json.loads(body)
            metadata = {
                "name": given["PodName"],
                "namespace": given["PodNamespace"],
                "uid": given["PodUID"],
            }
            pod = KnownPod({"metadata": metadata}).pod
            assert bind_body(pod, given["Node"]).decode() == body


@pytest.mark.parametrize("mode", ["names", "nodes"])
def test_preempt_requests_are_written_as_recorded(mode: str) -> None:
    bodies = [body for verb, _, body in recordings(mode) if verb == "preempt"]
    for body in bodies:
        given = json.loads(body)
        nodes = given["NodeNameToMetaVictims"] or given["NodeNameToVictims"]
        victims = {
            node: [
                (pod["UID"], b"") if mode == "names" else (pod["metadata"]["uid"], pod_json(pod))
                for pod in nodes[node]["Pods"]
            ]
            for node in reversed(nodes)
        }
        written = preempt_body(pod_json(given["Pod"]), victims, uids_only=mode == "names")
        assert written.decode() == body
    assert len(bodies) > 1


async def test_headers_are_those_recorded(world: World) -> None:
    (_, recorded, body), *_ = recordings("names")
    async with Extender(ExtenderConfig(url_prefix=world.extender.url + "/")) as extender:
        await extender.call("filter", body.encode())
    (call,) = world.extender.calls
    expected = [(name, value) for name, value in recorded.items() if name != "Host"]
    assert call.headers[0] == ("Host", world.extender.url.removeprefix("http://"))
    assert call.headers[1:] == expected


async def test_a_pod_from_the_api_server_is_sent_as_kube_scheduler_sends_it(world: World) -> None:
    (_, _, body), *_ = recordings("names")
    recorded = json.loads(body)["Pod"]
    for name in ("worker-0", "worker-1"):
        world.node(name)
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            key: recorded["metadata"][key] for key in ("annotations", "labels", "namespace", "name")
        },
        "spec": {"schedulerName": "moorage", "containers": [{"image": "nginx:1.7.9", "name": "c"}]},
    }
    world.api.create("/api/v1/namespaces/default/pods", document)
    async with world.scheduler({"filterVerb": "filter", "nodeCacheCapable": True}):
        await until(lambda: world.extender.calls)
    sent = world.extender.calls[0].body.decode()
    ours, theirs = _skeleton(sent), _skeleton(body)
    theirs["NodeNames"] = ours["NodeNames"]
    assert json.dumps(ours) == json.dumps(theirs)


def _skeleton(body: str) -> dict[str, object]:
    """Take out what differs from cluster to cluster, keeping the order of all keys."""
    given: dict[str, object] = json.loads(body.replace('"rec"', '"moorage"'))
    pod = given["Pod"]
    assert isinstance(pod, dict)
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        pod["metadata"][key] = key
    for key in ("serviceAccountName", "serviceAccount"):  # the recorded cluster had no accounts
        pod["spec"].pop(key, None)
    return given


def test_the_pod_is_written_once_per_state() -> None:
    pod = known_pod()
    assert pod.wire is pod.wire


async def test_connections_are_kept(world: World) -> None:
    async with Extender(ExtenderConfig(url_prefix=world.extender.url)) as extender:
        for _ in range(3):
            await extender.call("prioritize", b"{}")
    assert len(world.extender.calls) == 3
    assert len(world.extender.connections) == 1
