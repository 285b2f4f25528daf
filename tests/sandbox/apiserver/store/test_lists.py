"""Lists: selectors, pages and the version that a watch goes on from."""

import pytest

from tests.sandbox.apiserver.support import EVENTS, NODES, PODS, Http, labelled, node, pod


async def test_lists_are_in_the_order_of_namespace_and_name(http: Http) -> None:
    await http.create("/api/v1/namespaces/kube-system/pods", pod("a"))
    for name in ("c", "b"):
        await http.create(PODS, pod(name))
    assert await http.names("/api/v1/pods") == ["b", "c", "a"]
    assert await http.names(PODS) == ["b", "c"]
    assert (await http.get(PODS)).body["kind"] == "PodList"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=web", ["a", "b"]),
        ("app=web,tier!=back", ["a"]),
        ("tier", ["a", "b"]),
        ("!app", ["c"]),
        ("tier in (front,back)", ["a", "b"]),
        ("app notin (web)", ["c"]),
    ],
)
async def test_label_selectors(http: Http, selector: str, expected: list[str]) -> None:
    await http.create(PODS, labelled(pod("a"), app="web", tier="front"))
    await http.create(PODS, labelled(pod("b"), app="web", tier="back"))
    await http.create(PODS, pod("c"))
    assert await http.names(f"{PODS}?labelSelector={selector}") == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=n1", ["b"]),
        ("spec.nodeName=", ["a"]),
        ("spec.nodeName!=", ["b"]),
        ("metadata.name=a", ["a"]),
        ("metadata.namespace=default,spec.schedulerName=default-scheduler", ["a", "b"]),
        ("status.phase!=Pending", []),
        ("spec.hostNetwork=false", ["a", "b"]),
    ],
)
async def test_field_selectors(http: Http, selector: str, expected: list[str]) -> None:
    await http.create(PODS, pod("a"))
    await http.create(PODS, pod("b", nodeName="n1"))
    assert await http.names(f"{PODS}?fieldSelector={selector}") == expected


async def test_nodes_can_be_selected_by_cordon(http: Http) -> None:
    await http.create(NODES, node("n1"))
    await http.create(NODES, node("n2") | {"spec": {"unschedulable": True}})
    assert await http.names(f"{NODES}?fieldSelector=spec.unschedulable=true") == ["n2"]
    assert await http.names(f"{NODES}?fieldSelector=spec.unschedulable=false") == ["n1"]


@pytest.mark.parametrize(
    "query", ["labelSelector=a+in", "fieldSelector=a", "fieldSelector=spec.foo=1", "limit=x"]
)
async def test_selectors_that_make_no_sense_are_bad_requests(http: Http, query: str) -> None:
    reply = await http.get(f"{PODS}?{query}")
    assert (reply.code, reply.body["reason"]) == (400, "BadRequest")
    assert (
        await http.get(f"{PODS}?watch=1&{query.replace('limit', 'resourceVersion')}")
    ).code == 400


async def test_an_unsupported_field_is_named(http: Http) -> None:
    reply = await http.get(f"{EVENTS}?fieldSelector=spec.foo=1")
    assert reply.message == "field label not supported: spec.foo"


async def test_pages_show_one_moment(http: Http) -> None:
    for i in range(5):
        await http.create(NODES, node(f"n{i}"))
    first = (await http.get(f"{NODES}?limit=2")).body
    token = first["metadata"]["continue"]
    assert first["metadata"]["remainingItemCount"] == 3
    await http.send("DELETE", f"{NODES}/n2")
    await http.create(NODES, node("n9"))
    second = (await http.get(f"{NODES}?limit=2&continue={token}")).body
    third = (await http.get(f"{NODES}?continue={second['metadata']['continue']}")).body
    names = [i["metadata"]["name"] for page in (first, second, third) for i in page["items"]]
    assert names == ["n0", "n1", "n2", "n3", "n4"]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1
    assert "continue" not in third["metadata"]


async def test_a_watch_from_the_version_of_a_page_sees_what_came_after(http: Http) -> None:
    for i in range(2):
        await http.create(NODES, node(f"n{i}"))
    page = (await http.get(f"{NODES}?limit=1")).body["metadata"]
    await http.create(NODES, node("n9"))
    async with http.watch(NODES, resourceVersion=page["resourceVersion"]) as events:
        assert await events.take(1) == [("ADDED", "n9")]


async def test_tokens_that_are_not_known_have_expired(http: Http) -> None:
    reply = await http.get(f"{NODES}?continue=abc")
    assert (reply.code, reply.body["reason"]) == (410, "Expired")


async def test_a_token_is_for_its_own_list(http: Http) -> None:
    for i in range(2):
        await http.create(NODES, node(f"n{i}"))
    token = (await http.get(f"{NODES}?limit=1")).body["metadata"]["continue"]
    assert (await http.get(f"{PODS}?continue={token}")).code == 400
