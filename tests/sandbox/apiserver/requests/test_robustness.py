"""Any input: a Status or an object, never a 500, never a list that cannot be read."""

from copy import deepcopy
from typing import Any

from aiohttp import ClientSession
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.apiserver import ApiServer
from tests.conftest import EXAMPLES
from tests.sandbox.apiserver.support import EVENTS, NODES, PODS, Http, node, pod

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
JSON_PATCH = "application/json-patch+json"

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
