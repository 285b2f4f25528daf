"""Faults that tests inject, from Python and over HTTP."""

import asyncio

import aiohttp
import pytest
from msgspec import structs

from sandbox.apiserver import ApiServer, Fault
from tests.sandbox.apiserver.support import NODES, PODS, Http, node, pod
from tools.waiting import until


@pytest.mark.parametrize(
    ("status", "reason"),
    [(409, "Conflict"), (410, "Expired"), (429, "TooManyRequests"), (503, "ServiceUnavailable")],
)
async def test_the_next_answers_are_a_status(
    http: Http, api: ApiServer, status: int, reason: str
) -> None:
    await http.create(NODES, node())
    meant = Fault(verb="get", resource="nodes", name="n1", times=2)
    api.faults.add(structs.replace(meant, status=status, retry_after_seconds=3))
    assert (await http.get(f"{NODES}/n2")).code == 404
    for _ in range(2):
        reply = await http.get(f"{NODES}/n1")
        assert (reply.code, reply.body["reason"]) == (status, reason)
        assert reply.headers.get("Retry-After") == ("3" if status in (429, 503) else None)
    assert (await http.get(f"{NODES}/n1")).code == 200


@pytest.mark.parametrize("done", [False, True])
async def test_a_connection_is_dropped_before_or_after_it_happened(
    http: Http, api: ApiServer, done: bool
) -> None:
    await http.create(PODS, pod())
    api.faults.add(Fault(verb="create", resource="pods/binding", done=done, drop=True))
    with pytest.raises(aiohttp.ClientError):
        await http.bind("web", "n1")
    assert ("nodeName" in (await http.get(f"{PODS}/web")).body["spec"]) == done


async def test_a_request_can_be_delayed_before_it_happens(http: Http, api: ApiServer) -> None:
    api.faults.add(Fault(verb="create", delay_seconds=3600))
    async with asyncio.TaskGroup() as tasks:
        call = tasks.create_task(http.create(PODS, pod()))
        await until(lambda: not api.faults.waiting())
        assert await http.names(PODS) == []
        call.cancel()
    api.faults.add(Fault(verb="create", delay_seconds=0.01))
    await http.create(PODS, pod())


async def test_a_watch_can_be_answered_with_410(http: Http, api: ApiServer) -> None:
    api.faults.add(Fault(verb="watch", resource="pods", status=410))
    async with http.watch(PODS) as events:
        assert (await events.rest())[0]["object"]["code"] == 410


async def test_running_watches_and_all_known_versions_can_be_expired(
    http: Http, api: ApiServer
) -> None:
    version = (await http.create(NODES, node()))["metadata"]["resourceVersion"]
    async with http.watch(NODES, resourceVersion=version) as events:
        assert api.faults.expire_watches("nodes") == 1
        assert [each["object"]["code"] for each in await events.rest()] == [410]
    async with http.watch(NODES, resourceVersion=version) as events:
        assert (await events.rest())[0]["object"]["code"] == 410
    fresh = (await http.get(NODES)).body["metadata"]["resourceVersion"]
    async with http.watch(NODES, resourceVersion=fresh) as events:
        await http.create(NODES, node("n2"))
        assert await events.take(1) == [("ADDED", "n2")]


async def test_faults_can_be_injected_and_forgotten_over_http(http: Http) -> None:
    fault = {"verb": "list", "resource": "pods", "status": 429, "retryAfterSeconds": 7}
    waiting = await http.send("POST", "/sandbox/faults", fault)
    assert (waiting.code, waiting.body[0]["status"]) == (200, 429)
    reply = await http.get(PODS)
    assert (reply.code, reply.headers["Retry-After"]) == (429, "7")
    assert (await http.get("/sandbox/faults")).body == []
    await http.send("POST", "/sandbox/faults", {"status": 500})
    assert (await http.send("DELETE", "/sandbox/faults")).body == []
    assert (await http.get(PODS)).code == 200


async def test_watches_can_be_ended_over_http(http: Http) -> None:
    async with http.watch(PODS) as events:
        body = {"resource": "pods", "expire": True}
        assert (await http.send("POST", "/sandbox/watches/drop", body)).body == {"ended": 1}
        assert (await events.rest())[0]["object"]["code"] == 410
    assert (await http.send("POST", "/sandbox/watches/drop")).body == {"ended": 0}


@pytest.mark.parametrize("body", [{"verbs": "get"}, {"times": 0}, {"status": 200}, []])
async def test_faults_that_make_no_sense_are_refused(http: Http, body: object) -> None:
    assert (await http.send("POST", "/sandbox/faults", body)).code == 400
