"""Another gateway decides: binds of this one are refused, until it has begun a new term."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import grpc.aio
import pytest
import structlog.testing

from cli.up.processes import free_ports
from gateway.cluster.cluster import Cluster
from gateway.cluster.state import ClusterState
from gateway.leadership.barriers import StateRecovery
from moorage.testing import make_node, make_pod
from moorage.v1 import binder_pb2 as pb
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.kube import KubeClient
from moorage_host.rpc.channel import connect
from tools.inprocess.gateway import Gateway, Options, bind, gateway, plane, pod
from tools.waiting import until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LEASE = {"leader_election": "lease", "lease_retry_period": 0.1}


@asynccontextmanager
async def running(folder: Path, **more: Any) -> AsyncIterator[tuple[Gateway, str]]:
    (port,) = free_ports(1)
    options: Options = {"nodes": ("n1",), "binder": True, "port": port, **more}
    async with plane(folder, **options) as process:
        yield process, f"127.0.0.1:{port}"


def rewrite(process: Gateway, notes: dict[str, str], **spec: Any) -> None:
    """Change the Lease as another one would."""
    lease = process.api.read(f"{LEASES}/moorage-gateway")
    metadata = {k: v for k, v in lease["metadata"].items() if k != "resourceVersion"}
    metadata["annotations"] = {**metadata["annotations"], **notes}
    changed = {**lease, "metadata": metadata, "spec": {**lease["spec"], **spec}}
    process.api.replace(f"{LEASES}/moorage-gateway", changed)


async def test_a_bind_of_an_earlier_epoch_is_repeated_in_a_new_term(tmp_path: Path) -> None:
    async with running(tmp_path, barrier_timeout=5.0) as (process, binder):
        epoch = int(process.sample("moorage_term_epoch"))
        async with connect(binder) as channel:
            request = pb.BinderServiceBarrierRequest(epoch=epoch + 100, holder="another")
            await BinderServiceStub(channel).Barrier(request, timeout=50)

        obj = process.api.pod("p", schedulerName="moorage")
        assert await bind(process, obj) == ""
        assert process.api.node_of("p") == "n1"
        assert process.sample("moorage_term_epoch") > epoch + 100


async def test_a_gateway_whose_lease_another_one_takes_stands_by(tmp_path: Path) -> None:
    async with running(tmp_path, barrier_timeout=5.0, **LEASE) as (process, _):
        lease = process.api.read(f"{LEASES}/moorage-gateway")
        epoch = int(lease["metadata"]["annotations"]["moorage.io/epoch"])
        assert epoch == process.sample("moorage_term_epoch")

        rewrite(process, {}, holderIdentity="another")
        await until(lambda: process.sample("moorage_leader") == 0)

        status, answer = await process.get("/readyz")
        assert status == 503
        (check,) = (each for each in answer["checks"] if each["name"] == "leader")
        assert "another holds the Lease default/moorage-gateway" in str(check)
        obj = process.api.pod("p", schedulerName="moorage")
        assert "stands by" in await bind(process, obj)
        assert "stands by" in (await process.filter(pod(), "n1"))["Error"]
        assert not process.api.node_of("p")


async def test_a_long_lease_of_our_own_is_no_nonsense(tmp_path: Path) -> None:
    durations = {"lease_duration": 120.5, "lease_renew_deadline": 100.0}
    with structlog.testing.capture_logs() as logs:
        async with running(tmp_path, barrier_timeout=5.0, **LEASE | durations) as (process, _):
            obj = process.api.pod("p", schedulerName="moorage")
            assert await bind(process, obj) == ""
    assert not [log for log in logs if log["event"].startswith("The Lease has values")]


async def test_a_leader_that_cannot_renew_stops_before_its_lease_ends(tmp_path: Path) -> None:
    durations = {"lease_duration": 60.0, "lease_renew_deadline": 0.5}
    async with running(tmp_path, barrier_timeout=5.0, **LEASE | durations) as (process, _):
        process.api.fault("update", "leases", status=500, times=1000)
        await until(lambda: process.sample("moorage_leader") == 0)
        obj = process.api.pod("p", schedulerName="moorage")
        assert await bind(process, obj)
        assert not process.api.node_of("p")


@pytest.mark.parametrize(
    ("notes", "holder", "seconds"),
    [
        ({"moorage.io/epoch": "9" * 40}, "", 1),
        ({"moorage.io/epoch": str(2**63 - 1)}, "", 1),
        ({"moorage.io/epoch": "soon"}, "", 1),
        ({}, "another", 2**31 - 1),
    ],
)
async def test_nonsense_in_the_lease_keeps_no_gateway_from_a_new_term(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    notes: dict[str, str],
    holder: str,
    seconds: int,
) -> None:
    monkeypatch.setattr("gateway.leadership.election.LONGEST_SECONDS", 0.5)
    durations = {"lease_duration": 1.0, "lease_renew_deadline": 0.8}
    async with running(tmp_path, barrier_timeout=5.0, **LEASE | durations) as (process, _):
        epoch = process.sample("moorage_term_epoch")
        with structlog.testing.capture_logs() as logs:
            rewrite(process, notes, holderIdentity=holder, leaseDurationSeconds=seconds)
            await until(lambda: process.sample("moorage_term_epoch") > epoch)
            await until(lambda: process.sample("moorage_leader") == 1)
        assert process.sample("moorage_term_epoch") < 1e13  # as before, milliseconds
        assert [log for log in logs if log["event"].startswith("The Lease has values")]
        obj = process.api.pod("p", schedulerName="moorage")
        assert await bind(process, obj) == ""


def forgetful(*pods: pb.PodReference) -> grpc.GenericRpcHandler:
    """Return a binder that does not know whether it has bound the pods to n1."""

    async def barrier(
        request: pb.BinderServiceBarrierRequest, _: object
    ) -> pb.BinderServiceBarrierResponse:
        answer = pb.BinderServiceBarrierResponse(epoch=request.epoch, holder=request.holder)
        answer.memory.FromSeconds(3600)
        answer.binds.extend(pb.WrittenBind(pod=each, node="n1", unknown=True) for each in pods)
        return answer

    handler = grpc.unary_unary_rpc_method_handler(
        barrier,
        request_deserializer=pb.BinderServiceBarrierRequest.FromString,
        response_serializer=pb.BinderServiceBarrierResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler("moorage.v1.BinderService", {"Barrier": handler})


def test_pods_that_an_earlier_term_bound_have_what_its_bind_wrote() -> None:
    state, pod = ClusterState(), make_pod("p")
    state.set_node(make_node("n1"))
    state.set_pod(pod)
    recovery = StateRecovery(
        cast("KubeClient", None), cast("Cluster", SimpleNamespace(state=state)), lambda _: None
    )
    device = {"example.com/device": "a"}
    reference = pb.PodReference(namespace="default", name="p", uid=pod.uid)
    bind = pb.WrittenBind(pod=reference, node="n1", annotations=device)
    recovery.assume([(pod, bind)])
    (placed,) = state.placements("n1")
    assert placed.pod.annotations == device
    assert state.assume(pod, "n1") == device


async def test_the_api_server_is_asked_about_binds_that_no_binder_knows(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with gateway(
        tmp_path, binder=f"127.0.0.1:{port}", barrier_timeout=30.0, unknown_bind_wait=1.0
    ) as process:
        await process.node("n1")
        uid = process.api.pod("p", schedulerName="moorage")["metadata"]["uid"]
        server = grpc.aio.server()
        reference = pb.PodReference(namespace="default", name="p", uid=uid)
        server.add_generic_rpc_handlers([forgetful(reference)])
        server.add_insecure_port(f"127.0.0.1:{port}")
        await server.start()
        try:
            await until(lambda: process.sample("moorage_cache_size", type="assumed_pods") == 1)
            await until(
                lambda: process.sample("moorage_settled_binds_total", outcome="unbound") == 1
            )
            assert process.sample("moorage_cache_size", type="assumed_pods") == 0
        finally:
            await server.stop(None)
