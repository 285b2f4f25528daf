"""The binder as a gateway meets it: over gRPC, and as a process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import REGISTRY

from moorage.v1 import binder_pb2 as pb
from moorage.v1 import types_pb2
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.kube import KubeClient
from services.binder.binding.outcomes import BindReason
from services.binder.wire import CODES
from tests.forked import forked
from tools.inprocess.api import Api
from tools.inprocess.binder import BINDINGS, events_of, policy_of, request, serving
from tools.waiting import until

Code = grpc.StatusCode


@pytest.fixture
async def stub(kubeconfig: Path) -> AsyncIterator[BinderServiceStub]:
    async with serving(kubeconfig) as (_, channel):
        yield BinderServiceStub(channel)


def policy(content: bytes) -> types_pb2.Policy:
    return types_pb2.Policy(revision="1", json=content)


async def test_a_pod_is_bound_and_then_found_bound(stub: BinderServiceStub, api: Api) -> None:
    asked = request(api.pod(), annotations={"a": "b"})
    assert (await stub.Bind(asked, timeout=50)).outcome == pb.OUTCOME_BOUND
    assert (await stub.Bind(asked, timeout=50)).outcome == pb.OUTCOME_ALREADY_BOUND
    assert api.node_of() == "node-a"
    assert api.read_pod()["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize(
    ("spec", "change", "status", "code", "reason"),
    [
        ({"nodeName": "x"}, {}, 0, Code.ALREADY_EXISTS, "BOUND_ELSEWHERE"),
        ({"schedulingGates": [{"name": "a/b"}]}, {}, 0, Code.FAILED_PRECONDITION, "GATED"),
        ({}, {"uid": "another"}, 0, Code.FAILED_PRECONDITION, "OTHER_UID"),
        ({"nodeName": "node-a"}, {"uid": "another"}, 0, Code.FAILED_PRECONDITION, "OTHER_UID"),
        ({}, {"name": "ghost"}, 0, Code.NOT_FOUND, "NOT_FOUND"),
        ({}, {}, 403, Code.PERMISSION_DENIED, "FORBIDDEN"),
        ({}, {}, 422, Code.INVALID_ARGUMENT, "INVALID"),
        ({}, {}, 429, Code.UNAVAILABLE, "UNAVAILABLE"),
        ({}, {"policy": policy(policy_of("No").content)}, 0, Code.FAILED_PRECONDITION, "POLICY"),
        ({}, {"policy": policy(b"{")}, 0, Code.FAILED_PRECONDITION, "POLICY"),
        ({}, {"decision": b"{"}, 0, Code.INVALID_ARGUMENT, None),
        ({}, {"namespace": ""}, 0, Code.INVALID_ARGUMENT, None),
        ({}, {"namespace": "Default"}, 0, Code.INVALID_ARGUMENT, None),
        ({}, {"namespace": "a.b"}, 0, Code.INVALID_ARGUMENT, None),
        ({}, {"name": "web/binding"}, 0, Code.INVALID_ARGUMENT, None),
        ({}, {"name": "a" * 254}, 0, Code.INVALID_ARGUMENT, None),
        ({}, {"uid": ""}, 0, Code.INVALID_ARGUMENT, None),
        ({}, {"node": ""}, 0, Code.INVALID_ARGUMENT, None),
        ({}, {"node": "node a"}, 0, Code.INVALID_ARGUMENT, None),
        ({}, {"node": "-node"}, 0, Code.INVALID_ARGUMENT, None),
    ],
)
async def test_a_refusal_has_its_code_and_reason_and_binds_nothing(
    stub: BinderServiceStub,
    api: Api,
    spec: dict[str, Any],
    change: dict[str, Any],
    status: int,
    code: Code,
    reason: str | None,
) -> None:
    effects: dict[str, Any] = {"status": status, "retry_after_seconds": 60} if status else {}
    pod, posts = api.pod(**spec), api.count(*BINDINGS, **effects)
    named = next(iter(change)) if reason is None else "default/"
    with pytest.raises(grpc.aio.AioRpcError, match=named) as caught:
        await stub.Bind(request(pod, **change), timeout=50)
    assert caught.value.code() is code
    assert dict(caught.value.trailing_metadata() or ()).get("moorage-reason") == reason
    assert api.node_of() == spec.get("nodeName")
    assert (posts() == 0) == (reason in (None, "POLICY"))


async def test_an_answer_comes_before_the_caller_stops_listening(
    kubeconfig: Path, api: Api
) -> None:
    api.fault(*BINDINGS, delay_seconds=0.5)
    async with serving(kubeconfig, answer_margin=0.8) as (_, channel):
        with pytest.raises(grpc.aio.AioRpcError, match="not known to be bound") as caught:
            await BinderServiceStub(channel).Bind(request(api.pod()), timeout=1.0)
    assert caught.value.code() is Code.DEADLINE_EXCEEDED


async def test_binds_and_tries_are_counted(stub: BinderServiceStub, api: Api) -> None:
    def value(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, labels) or 0.0

    bound = value("moorage_binds_total", outcome="bound")
    gated = value("moorage_binds_total", outcome="gated")
    retries = value("moorage_bind_retries_total", cause="500")
    api.fault(*BINDINGS, status=500)
    await stub.Bind(request(api.pod()), timeout=50)
    gated_pod = api.pod("gated", schedulingGates=[{"name": "example.com/g"}])
    with pytest.raises(grpc.aio.AioRpcError):
        await stub.Bind(request(gated_pod), timeout=50)
    assert value("moorage_binds_total", outcome="bound") == bound + 1
    assert value("moorage_binds_total", outcome="gated") == gated + 1
    assert value("moorage_bind_retries_total", cause="500") == retries + 1
    assert value("moorage_binds_running") == 0


async def test_binds_and_events_are_finished_before_the_service_ends(
    kubeconfig: Path, api: Api, client: KubeClient
) -> None:
    posts = api.count(*BINDINGS, delay_seconds=0.2)
    async with serving(kubeconfig, events="all") as (_, channel):
        stub = BinderServiceStub(channel)
        listed = await stub.ListPlugins(pb.BinderServiceListPluginsRequest(), timeout=50)
        assert not listed.decisions_for_plugins_only
        call = stub.Bind(request(api.pod()), timeout=50)
        waiting = asyncio.ensure_future(call)
        await until(lambda: posts() == 1)
        call.cancel()
        await asyncio.wait([waiting])
    assert api.node_of() == "node-a"
    assert [event["reason"] for event in await events_of(client)] == ["Scheduled"]


PLUGIN = """
from moorage import Arguments, Binding, BindPlugin, Refusal


class Scan(BindPlugin):
    "Refuses every pod."

    class Args(Arguments):
        reason: str = "the scan is not over"

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        return Refusal(f"{self.args.reason}: {binding.decision.winner.score:g}")
"""


async def test_plugins_of_files_are_listed_and_run_with_the_policy_of_the_call(
    kubeconfig: Path, api: Api, tmp_path: Path
) -> None:
    file = tmp_path / "scan.py"
    file.write_text(PLUGIN)
    text = policy_of("Scan", args={"reason": "not yet"})
    asked = request(
        api.pod(),
        policy=types_pb2.Policy(revision=text.revision, json=text.content),
        decision=b'{"winner":{"node":"node-a","score":7.5},"later":1}',
    )
    async with serving(kubeconfig, plugin=(file,)) as (_, channel):
        stub = BinderServiceStub(channel)
        answer = await stub.ListPlugins(pb.BinderServiceListPluginsRequest(), timeout=50)
        assert answer.decisions_for_plugins_only
        listed = answer.plugins
        assert [plugin.name for plugin in listed] == ["DecisionAnnotation", "GangPermit", "Scan"]
        assert list(listed[2].extension_points) == ["PreBind"]
        assert listed[2].origin == str(file)
        with pytest.raises(grpc.aio.AioRpcError, match=r"plugin Scan: not yet: 7\.5") as caught:
            await stub.Bind(asked, timeout=50)
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert dict(caught.value.trailing_metadata())["moorage-reason"] == "REFUSED"
    assert api.node_of() is None
    labels = {"plugin": "Scan", "point": "PreBind", "result": "refused"}
    assert (REGISTRY.get_sample_value("moorage_bind_plugin_results_total", labels) or 0) > 0


async def test_every_reason_has_a_code() -> None:
    assert CODES.keys() == set(BindReason)
    assert CODES[BindReason.PLUGIN_FAILED] is Code.ABORTED


async def test_a_process_without_a_kubeconfig_says_so_in_one_line() -> None:
    options = ("--port=0", "--admin-port=0", "--host=127.0.0.1", "--admin-host=127.0.0.1")
    async with forked("services.binder", "--kubeconfig=nowhere", *options) as binder:
        code, errors = await binder.ended()
    assert code == 1
    assert "there is no kubeconfig at nowhere" in errors.splitlines()[-1]
