"""Requests that go wrong: the code, the reason and the words, and never a traceback."""

from copy import deepcopy
from typing import Any

import pytest
from aiohttp import ClientSession
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.apiserver import ApiServer, Settings
from tests.conftest import EXAMPLES
from tests.sandbox.apiserver.support import EVENTS, NODES, PODS, Http, node, pod

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 100_000, id="deep list"),
        *(
            pytest.param(b'{"a":' * depth + b"1" + b"}" * depth, id=f"object of depth {depth}")
            for depth in (900, 9000, 100_000)  # which of them can be read depends on Python
        ),
    ],
)
async def test_bodies_that_are_no_objects_are_refused(http: Http, body: bytes) -> None:
    for method, path in (("POST", PODS), ("PUT", f"{PODS}/web")):
        reply = await http.send(method, path, body)
        refused = [(400, "BadRequest"), (422, "Invalid")]
        if method == "PUT":
            refused.append((404, "NotFound"))  # it could be read, and there is no such pod
        assert (reply.code, reply.body["reason"]) in refused, method


async def test_an_amount_that_is_none_is_refused_with_the_field(http: Http) -> None:
    reply = await http.send("POST", NODES, node() | {"status": {"capacity": {"cpu": "lots"}}})
    assert (reply.code, "status.capacity[cpu]" in reply.message) == (422, True)


@pytest.mark.parametrize("query", ["", "?fieldValidation=Warn"])
async def test_unknown_fields_are_kept_with_a_warning(http: Http, query: str) -> None:
    reply = await http.send("POST", PODS + query, pod(schedulerNme="moorage"))
    assert (reply.code, reply.body["spec"]["schedulerNme"]) == (201, "moorage")
    assert reply.headers["Warning"] == r'299 - "unknown field \"spec.schedulerNme\""'
    reply = await http.send("POST", PODS + query, pod("odd") | {'a\r\nX: "\\é': 1})
    assert (reply.code, "X" in reply.headers) == (201, False)


async def test_a_body_above_the_limit_is_too_large() -> None:
    settings = Settings(max_body_bytes=10_000)
    async with ApiServer(settings) as api, ClientSession(api.url) as session:
        reply = await Http(session).send("POST", PODS, pod(nodeName="x" * 20_000))
    assert (reply.code, reply.body["reason"]) == (413, "RequestEntityTooLarge")
    assert "10000" in reply.message


async def test_what_nobody_expected_is_a_500_without_details(http: Http, api: ApiServer) -> None:
    def explode(_: object) -> None:
        raise ZeroDivisionError("secret")

    await http.create(PODS, pod())
    api.cluster.store.listen("/pods", explode)
    reply = await http.bind("web", "n1")
    assert (reply.code, reply.body["reason"]) == (500, "InternalError")
    assert "secret" not in reply.message


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

NONSENSE: list[Any] = [
    None, True, 0, -1, 1.5, "", "a", "1", [], [1], ["a"], [[]], [{}], {}, {"a": 1}, {"a": "b"},
    {"name": "a"}, [{"name": "a"}], {"type": "Ready"}, [{"type": "Ready", "status": "True"}],
]  # fmt: skip
values = st.sampled_from(NONSENSE)
FULL = {
    PODS: pod(
        tolerations=[{"key": "a", "operator": "Exists"}],
        schedulingGates=[{"name": "a"}],
        readinessGates=[{"conditionType": "a"}],
        priorityClassName="system-node-critical",
        nodeSelector={"a": "b"},
    ),
    NODES: node(conditions=[{"type": "Ready", "status": "True"}], nodeInfo={"osImage": "a"})
    | {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": True}},
    EVENTS: {
        "metadata": {"name": "e", "labels": {}, "annotations": {}, "finalizers": []},
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
        "source": {"component": "a", "host": "b"},
        "series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"},
        "message": "a",
        "count": 1,
        "lastTimestamp": "2026-01-01T00:00:00Z",
    },
    LEASES: {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseTransitions": 1}},
}
STATUS = {
    "phase": "Running",
    "reason": "a",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "a", "ready": True, "state": {"waiting": {"reason": "a"}}}],
}


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to everything inside a value."""
    inner = dict(enumerate(value)) if isinstance(value, list) else value
    found = [prefix] if prefix else []
    for key, each in inner.items() if isinstance(inner, dict) else ():
        found += paths(each, (*prefix, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    copy = deepcopy(value)
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return copy


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, Any]:
    """Return where to create an object, and one in which something was replaced by nonsense."""
    path = draw(st.sampled_from(sorted(FULL)))
    return path, replaced(FULL[path], draw(st.sampled_from(paths(FULL[path]))), draw(values))


async def check_readable(http: Http) -> None:
    for path in FULL:
        for accept in ("application/json", TABLE):
            reply = await http.get(path, accept=accept)
            assert reply.code == 200, reply.text
    for selector in ("spec.nodeName=a", "status.phase!=a", "spec.hostNetwork=true"):
        assert (await http.get(f"{PODS}?fieldSelector={selector}")).code == 200


@settings(max_examples=2 * EXAMPLES)
@given(st.lists(broken(), min_size=1, max_size=3), st.sampled_from(paths(STATUS)), values)
async def test_nonsense_is_refused_or_harmless(
    writes: list[tuple[str, Any]], status_path: tuple[Any, ...], value: Any
) -> None:
    async with ApiServer() as api, ClientSession(api.url) as session:
        http = Http(session)
        for path, obj in writes:
            reply = await http.send("POST", path, obj)
            assert reply.code in (201, 400, 403, 404, 409, 422), reply.text
            await check_readable(http)
            if reply.code == 201:
                name = reply.body["metadata"]["name"]
                status = {"status": replaced(STATUS, status_path, value)}
                patched = await http.patch(f"{path}/{name}/status", status)
                assert patched.code in (200, 400, 404, 422), patched.text
                bound = await http.bind(name, "n1")
                assert bound.code in (201, 400, 404, 409), bound.text
                await check_readable(http)


@given(
    st.sampled_from(["merge-patch+json", "strategic-merge-patch+json"]),
    st.sampled_from(paths(FULL[PODS])),
    values,
)
async def test_nonsense_in_patches_is_refused_or_harmless(
    kind: str, path: tuple[Any, ...], value: Any
) -> None:
    async with ApiServer() as api, ClientSession(api.url) as session:
        http = Http(session)
        await http.create(PODS, FULL[PODS])
        change = replaced(FULL[PODS], path, value)
        reply = await http.patch(f"{PODS}/web?fieldManager=me", change, kind)
        assert reply.code in (200, 400, 409, 422), reply.text
        await check_readable(http)


@settings(max_examples=2 * EXAMPLES)
@given(st.binary(max_size=80))
async def test_any_bytes_as_protobuf_are_refused_politely(data: bytes) -> None:
    async with ApiServer() as api, ClientSession(api.url) as session:
        http = Http(session)
        for body in (data, b"k8s\x00" + data, b"k8s\x00\x0a\x0d\x12\x0bBindinga" + data):
            media = "application/vnd.kubernetes.protobuf"
            reply = await http.send("POST", "/api/v1/namespaces", body, media=media)
            assert reply.code == 400, reply.text
