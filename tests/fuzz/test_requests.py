"""Whatever comes to the port that kube-scheduler calls is answered, rightly or with a sentence."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.fuzz.cases import bodies, check_growth, limits
from tools.inprocess.edge import ServedEdge, go_request, names_args, recorded, serving, text
from tools.inprocess.gateway import Gateway, Options, plane

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALLS = [
    (f"/{verb}", json.loads(body))
    for verb, body in {*recorded("1.37-names"), *recorded("1.37-nodes")}
]
"""What kube-scheduler sends."""

BY_HAND = ("/filter/NodeResourcesFit", "/prioritize/ImageLocality")

ALLOWED = {"/preempt": (200, 400, 503)}

POLICY = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- schedulerName: rec
  plugins:
    multiPoint: {enabled: [{name: InTree}]}
    filter: {enabled: [{name: NodeGroup}, {name: StatefulSetZone}, {name: OneNodePerPipelineRun}]}
    score: {enabled: [{name: ImageScore}, {name: RequestedToCapacityRatio}]}
"""

WORDS = (
    *(
        b"POST /filter HTTP/1.1\r\n",
        b"GET ",
        b"/bind",
        b"//",
        b"%00",
        b"HTTP/1.0",
        b"PRI * HTTP/2.0",
    ),
    *(b"Content-Length: ", b"Transfer-Encoding: chunked", b"Content-Encoding: gzip", b"Host: x"),
    *(b"Connection: close", b"Expect: 100-continue", b"Upgrade: h2c", b"\r\n\r\n", b"\r\n"),
    *(b"0\r\n\r\n", b"PRI * HTTP/2.0", b"-1", b"99999999999999999999", b"{}"),
)
QUIET = 0.02
"""Seconds without a byte after which nothing more is expected."""

GOOD = go_request("POST", "/filter", text(names_args("a")).encode())
BINDING = {"PodName": "a", "PodNamespace": "default", "PodUID": "u", "Node": "n"}
CHUNKED = (
    b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'10\r\n{"Pod": {}, "Nod\r\n10\r\neNames": ["a"]} \r\n0\r\n\r\n'
)
WHOLE = (GOOD, go_request("POST", "/bind", text(BINDING).encode()), CHUNKED)
"""Requests that are right."""


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, bytes]:
    """Draw a call that is almost right."""
    path, document = draw(st.sampled_from(CALLS))
    if draw(st.integers(0, 9)) == 0:
        path = draw(st.sampled_from(BY_HAND))
    return path, draw(bodies([document]))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a request of which a few bytes were cut, repeated or replaced."""
    request = draw(st.sampled_from(WHOLE))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(request)))
        end = start + draw(st.integers(0, 8))
        part = draw(st.sampled_from((b"", request[start:end] * 2, *WORDS)) | st.binary(max_size=4))
        request = request[:start] + part + request[end:]
    return request


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def edge() -> AsyncIterator[ServedEdge]:
    """The edge alone, which lets all nodes pass."""
    async with serving(http_timeout=0.5) as served:
        yield served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """A gateway with its services, and the nodes of the recordings."""
    folder, names = tmp_path_factory.mktemp("fuzz"), [f"worker-{number}" for number in range(6)]
    options: Options = {"cache_bytes": 1 << 20, "http_timeout": 8.0, "unknown_pod_wait": 0.0}
    async with plane(folder, policy=POLICY, nodes=names, binder=True, **options) as running:
        for name in names:
            running.api.pod(f"on-{name}", labels={"app": "plain"}, nodeName=name)
        yield running


@given(call=calls())
async def test_every_body_is_answered_by_the_edge(
    edge: ServedEdge, call: tuple[str, bytes]
) -> None:
    async with limits():
        answer = await edge.post(*call)
    check(call[0], answer.status, answer.body)
    assert unexpected(edge.registry) == 0
    for kept in (edge.cycles.scheduling, edge.cycles.preempts, edge.cycles.binds):
        kept.clear()


@given(call=calls())
async def test_every_body_is_answered_by_plugins(gateway: Gateway, call: tuple[str, bytes]) -> None:
    path, body = call
    headers = {"Content-Type": "application/json"}
    async with (
        limits(),
        gateway.session.post(gateway.url + path, data=body, headers=headers) as answer,
    ):
        check(path, answer.status, await answer.read())
    assert unexpected(gateway.registry) == 0


async def test_calls_leave_nothing_behind(gateway: Gateway) -> None:
    async def again(call: tuple[str, bytes]) -> None:
        path, body = call
        for url in (gateway.url + path, f"{gateway.admin}/simulate/filter"):
            async with gateway.session.post(url, data=body) as answer:
                await answer.read()

    await check_growth(calls(), again)


@given(
    sent=damaged()
    | st.lists(st.sampled_from(WORDS) | st.binary(max_size=6), max_size=9).map(b"".join)
)
@example(sent=GOOD + b"\0")
async def test_whatever_comes_on_a_connection_others_are_served(
    edge: ServedEdge, sent: bytes
) -> None:
    async with limits():
        reader, writer = await asyncio.open_connection("127.0.0.1", edge.port)
        try:
            writer.write(sent)
            answer = await until_quiet(reader)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        async with edge.connect() as good:
            await good.send(GOOD)
            assert (await good.answer()).status == 200
    if answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/"), answer
        assert head.split(b" ")[1] != b"500", answer
        assert b"Traceback" not in body, answer


async def until_quiet(reader: asyncio.StreamReader) -> bytes:
    """Read what is answered soon."""
    answer = b""
    with suppress(TimeoutError, ConnectionError):
        while True:
            async with asyncio.timeout(QUIET):
                part = await reader.read(65536)
            if not part:
                break
            answer += part
    return answer


def check(path: str, status: int, body: bytes) -> None:
    """Refuse an answer that kube-scheduler could not read, or that hides a failure."""
    assert status in ALLOWED.get(path, (200,)), (status, body)
    assert b"internal error" not in body, body
    if status != 200:
        return
    answer = json.loads(body.decode(), parse_constant=_no_constant)
    if isinstance(answer, dict):
        assert len(str(answer.get("Error", ""))) <= 2048, body[:3000]
    else:
        assert all(0 <= each["Score"] <= 1000 for each in answer), body


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def unexpected(registry: CollectorRegistry) -> float:
    """Return how often a call failed in a way that an answer to prioritize cannot show."""
    name = "moorage_extender_requests_total"
    (family,) = registry.restricted_registry([name]).collect()
    return sum(each.value for each in family.samples if each.labels.get("result") == "internal")
