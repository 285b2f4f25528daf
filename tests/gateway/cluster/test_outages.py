"""What callers get while the API server, filter or scorer is down, slow, or answers garbage."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count, permutations
from pathlib import Path
from typing import Any

import pytest

from moorage import FilterPlugin, Node, Pod
from moorage.v1 import replica_pb2, types_pb2
from moorage_host.plugins.registry import Registry
from services.filter.servicer import FilterServicer
from tests.gateway.replicas.test_names import program
from tools.inprocess.gateway import Gateway, filter_service, plane, pod, policy_of, ready
from tools.waiting import until

REASON = types_pb2.Reason(plugin="X", text="no")


class Misbehaving(FilterServicer):
    """A filter service that keeps the session in order, but answers all cycles alike."""

    def __init__(self, result: replica_pb2.CycleResult) -> None:
        super().__init__(Registry(FilterPlugin))
        self._result = result

    async def Session(
        self, request_iterator: AsyncIterator[replica_pb2.SessionRequest], context: Any
    ) -> AsyncIterator[replica_pb2.SessionResponse]:
        plugin = types_pb2.Plugin(name="NodeName", extension_points=["Filter"])
        hello = types_pb2.Hello(replica="odd", plugins=[plugin])
        yield replica_pb2.SessionResponse(hello=hello)
        async for request in request_iterator:
            if request.HasField("cycle"):
                result = replica_pb2.CycleResult()
                result.CopyFrom(self._result)
                result.cycle = request.cycle.id
                yield replica_pb2.SessionResponse(result=result)
            else:
                done = types_pb2.Acknowledgement(generation=request.state.generation)
                yield replica_pb2.SessionResponse(acknowledgement=done)


async def test_a_gateway_that_cannot_follow_the_cluster_is_not_ready_until_it_can(
    tmp_path: Path,
) -> None:
    async with plane(tmp_path) as running:
        running.api.fault("watch", "pods", drop=True, times=1000)
        running.api.faults.drop_watches()
        async with asyncio.timeout(20):
            while (answer := await running.get("/readyz"))[0] == 200:  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.05)
        (check,) = answer[1]["checks"]
        assert check["name"] == "cache"
        assert check["reason"].startswith("pods have not been followed for")
        running.api.faults.clear()
        await ready(running)


async def change(running: Gateway, *paths: str) -> None:
    """Change objects again and again, so that the API server is never silent."""
    for number in count():
        for path in paths:
            running.api.label(path, number=str(number))
        await asyncio.sleep(0.1)


async def test_nobody_decides_by_state_that_is_too_old(tmp_path: Path) -> None:
    async with plane(tmp_path, nodes=("n1",), waits=False, max_cache_age=2.0) as running:
        running.api.pod("other", nodeName="n1")
        paths = ("/api/v1/nodes/n1", "/api/v1/namespaces/default/pods/other")
        changing = asyncio.create_task(change(running, *paths))
        await ready(running)
        running.api.fault("watch", "pods", drop=True, times=1000)
        running.api.faults.drop_watches()
        await until(lambda: running.sample("moorage_cache_age_seconds", resource="pods") > 2)
        answer = await running.filter(pod(), "n1")
        changing.cancel()
        assert answer["Error"].startswith("Moorage's view of the cluster is too old")
        assert answer["NodeNames"] is None
        assert running.sample("moorage_stale_calls_total") == 1


async def test_calls_fail_at_once_when_there_has_been_no_filter_for_a_while(tmp_path: Path) -> None:
    service = filter_service()
    address = await service.__aenter__()
    far: dict[str, Any] = {"http_timeout": 300, "filter_wait": 0.2}
    async with plane(tmp_path, nodes=("n1",), filters=address, **far) as running:
        await service.__aexit__(None, None, None)
        async with asyncio.timeout(60):
            for _ in range(2):
                answer = await running.filter(pod(), "n1")
                assert answer["Error"] == "filter service is not available"
        failed = {"verb": "filter", "result": "failed"}
        assert running.sample("moorage_extender_requests_total", **failed) == 2


@pytest.mark.parametrize(
    ("result", "error"),
    [
        pytest.param(
            replica_pb2.CycleResult(verdicts=b"\1\0\1\0\1\0\1\0", reasons=[REASON]),
            "filter service answers nonsense: verdicts do not match the nodes",
            id="verdicts for other nodes",
        ),
        pytest.param(
            replica_pb2.CycleResult(verdicts=b"\2\0\2\0", reasons=[REASON]),
            "filter service answers nonsense: a verdict has no reason",
            id="a verdict without a reason",
        ),
        pytest.param(
            replica_pb2.CycleResult(status=types_pb2.CycleStatus(code=13, message="it broke")),
            "filter service: it broke",
            id="a failure",
        ),
    ],
)
async def test_garbage_from_the_filter_is_an_error_and_no_veto(
    tmp_path: Path, result: replica_pb2.CycleResult, error: str
) -> None:
    async with (
        program(Misbehaving(result)) as filters,
        plane(tmp_path, nodes=("n1", "n2"), filters=filters) as running,
    ):
        answer = await running.filter(pod(), "n1", "n2")
        assert answer["Error"] == error
        assert answer["NodeNames"] is None
        assert answer["FailedNodes"] is None
        nonsense = running.sample("moorage_invalid_results_total", service="filter")
        assert nonsense == ("nonsense" in error)


async def test_a_replica_that_is_too_far_behind_starts_anew(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(20)]
    async with plane(tmp_path, kept_changes=1) as process:
        await process.node(*names)

        async def all_pass() -> bool:
            return bool((await process.filter(pod(), *names))["NodeNames"] == names)

        await until(all_pass)
        assert process.sample("moorage_sessions_opened_total", service="filter") > 1


async def test_a_plugin_that_fails_on_a_node_which_a_call_does_not_name_fails_no_call(
    tmp_path: Path,
) -> None:
    class NeedsLabel(FilterPlugin):
        def filter_node(self, pod: Pod, node: Node) -> None:
            if pod.name == "other":
                assert node.name != "n3"

    policy = policy_of("{filter: {enabled: [{name: NeedsLabel}]}}")
    nodes = ("n1", "n2", "n3", "n4")
    async with plane(tmp_path, NeedsLabel, policy=policy, nodes=nodes) as running:
        for number, names in enumerate(permutations(("n1", "n2", "n3"))):
            await running.filter(pod(f"p{number}"), *names)
        answer = await running.filter(pod("other"), "n1", "n2", "n4")
        assert (answer["Error"], answer["NodeNames"]) == ("", ["n1", "n2", "n4"])
