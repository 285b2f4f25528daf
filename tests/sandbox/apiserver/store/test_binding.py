"""Binding: the order of its checks, their codes and texts, and what it writes."""

import asyncio

import aiohttp
import pytest

from sandbox.apiserver import ApiServer, Settings
from tests.sandbox.apiserver.support import NODES, PODS, Http, node, pod


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
    async with asyncio.timeout(50):
        while (item := pods.get("default", name)) and item.object["status"]["phase"] != phase:
            await pods.changed.wait(5)
