"""The binder as a gateway meets it: over gRPC, and as a process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from prometheus_client import REGISTRY

from moorage.errors import ConfigurationError
from moorage.v1 import binder_pb2 as pb
from moorage.v1 import types_pb2
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.kube import KubeClient
from moorage_host.rpc.serve import running
from services.binder.binding.outcomes import BindReason
from services.binder.servicer import binder_service
from services.binder.wire import CODES
from tests.forked import forked
from tools.inprocess.api import Api
from tools.inprocess.binder import BINDINGS, events_of, policy_of, request, settings_for
from tools.waiting import until


@pytest.fixture
async def stub(kubeconfig: Path) -> AsyncIterator[BinderServiceStub]:
    settings = settings_for(kubeconfig)
    async with (
        running(binder_service(settings), settings) as service,
        grpc.aio.insecure_channel(service.grpc) as channel,
    ):
        yield BinderServiceStub(channel)


async def code_of(stub: BinderServiceStub, asked: pb.BindRequest) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Bind(asked, timeout=50)
    code: grpc.StatusCode = caught.value.code()
    return code


async def test_a_pod_is_bound_and_then_found_bound(stub: BinderServiceStub, api: Api) -> None:
    asked = request(api.pod(), annotations={"a": "b"})
    assert (await stub.Bind(asked, timeout=50)).outcome == pb.OUTCOME_BOUND
    assert (await stub.Bind(asked, timeout=50)).outcome == pb.OUTCOME_ALREADY_BOUND
    assert api.node_of() == "node-a"
    assert api.read_pod()["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize("events", ["failures", "all"])
async def test_a_binder_says_whether_it_needs_decisions_without_plugins(
    kubeconfig: Path, events: str
) -> None:
    settings = settings_for(kubeconfig, events=events)
    async with (
        running(binder_service(settings), settings) as service,
        grpc.aio.insecure_channel(service.grpc) as channel,
    ):
        request = pb.BinderServiceListPluginsRequest()
        answer = await BinderServiceStub(channel).ListPlugins(request, timeout=50)
    assert answer.decisions_for_plugins_only == (events == "failures")


@pytest.mark.parametrize(
    "change",
    [
        {"namespace": ""},
        {"namespace": "Default"},
        {"namespace": "a.b"},
        {"name": "web/binding"},
        {"name": "a" * 254},
        {"uid": ""},
        {"node": ""},
        {"node": "node a"},
        {"node": "-node"},
    ],
    ids=str,
)
async def test_fields_that_are_no_names_are_refused_before_anything_is_sent(
    stub: BinderServiceStub, api: Api, change: dict[str, str]
) -> None:
    [field] = change
    with pytest.raises(grpc.aio.AioRpcError, match=field) as caught:
        await stub.Bind(request(api.pod(), **change), timeout=50)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert api.node_of() is None


async def test_refusals_have_the_codes_that_the_contract_names(
    stub: BinderServiceStub, api: Api
) -> None:
    bound, other = api.pod("bound", nodeName="x"), api.pod("other")
    gated = api.pod("gated", schedulingGates=[{"name": "example.com/g"}])
    codes = grpc.StatusCode
    assert await code_of(stub, request(bound)) is codes.ALREADY_EXISTS
    assert await code_of(stub, request(gated)) is codes.FAILED_PRECONDITION
    assert await code_of(stub, request(other, uid="another")) is codes.FAILED_PRECONDITION
    assert await code_of(stub, request(other, name="ghost")) is codes.NOT_FOUND
    api.fault(*BINDINGS, status=403)
    assert await code_of(stub, request(other)) is codes.PERMISSION_DENIED
    api.fault(*BINDINGS, status=429, retry_after_seconds=60)
    assert await code_of(stub, request(other)) is codes.UNAVAILABLE


async def test_binds_and_tries_are_counted(stub: BinderServiceStub, api: Api) -> None:
    def value(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, labels) or 0.0

    bound = value("moorage_binds_total", outcome="bound")
    gated = value("moorage_binds_total", outcome="gated")
    retries = value("moorage_bind_retries_total", cause="500")
    api.fault(*BINDINGS, status=500)
    await stub.Bind(request(api.pod()), timeout=50)
    await code_of(stub, request(api.pod("gated", schedulingGates=[{"name": "example.com/g"}])))
    assert value("moorage_binds_total", outcome="bound") == bound + 1
    assert value("moorage_binds_total", outcome="gated") == gated + 1
    assert value("moorage_bind_retries_total", cause="500") == retries + 1
    assert value("moorage_binds_running") == 0


async def test_binds_and_events_are_finished_before_the_service_ends(
    kubeconfig: Path, api: Api, client: KubeClient
) -> None:
    settings = settings_for(kubeconfig, events="all")
    posts = api.count(*BINDINGS, delay_seconds=0.2)
    api.pod()
    async with (
        running(binder_service(settings), settings) as service,
        grpc.aio.insecure_channel(service.grpc) as channel,
    ):
        call = BinderServiceStub(channel).Bind(request(api.read_pod()), timeout=50)
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
    settings = settings_for(kubeconfig, plugin=(file,))
    text = policy_of("Scan", args={"reason": "not yet"})
    asked = request(
        api.pod(),
        policy=types_pb2.Policy(revision=text.revision, json=text.content),
        decision=b'{"winner":{"node":"node-a","score":7.5},"later":1}',
    )
    async with (
        running(binder_service(settings), settings) as service,
        grpc.aio.insecure_channel(service.grpc) as channel,
    ):
        stub = BinderServiceStub(channel)
        listed = (await stub.ListPlugins(pb.BinderServiceListPluginsRequest(), timeout=50)).plugins
        assert [plugin.name for plugin in listed] == ["DecisionAnnotation", "GangPermit", "Scan"]
        assert list(listed[2].extension_points) == ["PreBind"]
        assert listed[2].origin == str(file)
        with pytest.raises(grpc.aio.AioRpcError, match=r"plugin Scan: not yet: 7\.5") as caught:
            await stub.Bind(asked, timeout=50)
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert dict(caught.value.trailing_metadata())["moorage-reason"] == "REFUSED"
    assert api.node_of() is None


async def test_a_plugin_that_fails_and_a_policy_that_cannot_be_used_have_their_codes(
    stub: BinderServiceStub, api: Api
) -> None:
    missing = types_pb2.Policy(revision="1", json=policy_of("Missing").content)
    assert await code_of(stub, request(api.pod(), policy=missing)) is (
        grpc.StatusCode.FAILED_PRECONDITION
    )
    garbage = types_pb2.Policy(revision="2", json=b"{")
    assert await code_of(stub, request(api.read_pod(), policy=garbage)) is (
        grpc.StatusCode.FAILED_PRECONDITION
    )
    assert await code_of(stub, request(api.read_pod(), decision=b"{")) is (
        grpc.StatusCode.INVALID_ARGUMENT
    )
    assert CODES[BindReason.PLUGIN_FAILED] is grpc.StatusCode.ABORTED


async def test_every_reason_has_a_code() -> None:
    assert CODES.keys() == set(BindReason)


async def test_a_plugin_that_cannot_be_loaded_ends_the_process_with_its_line(
    kubeconfig: Path, tmp_path: Path
) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n")
    settings = settings_for(kubeconfig, plugin=(file,))
    with pytest.raises(ConfigurationError, match=r"broken\.py:1: ZeroDivisionError"):
        async with running(binder_service(settings), settings):
            pass


async def test_a_process_without_a_kubeconfig_says_so_in_one_line() -> None:
    options = ("--port=0", "--admin-port=0", "--host=127.0.0.1", "--admin-host=127.0.0.1")
    async with forked("services.binder", "--kubeconfig=nowhere", *options) as binder:
        code, errors = await binder.ended()
    assert code == 1
    assert "there is no kubeconfig at nowhere" in errors.splitlines()[-1]
