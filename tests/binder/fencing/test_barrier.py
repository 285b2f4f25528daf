"""Barriers as a gateway meets them, and the memory of binds from which they are answered."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import REGISTRY

from moorage import Binding
from moorage.v1 import binder_pb2 as pb
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.rpc.convert import from_duration
from services.binder.binding.ledger import BindHistory
from tests.binder.test_sessions import Stream
from tools.inprocess.api import Api
from tools.inprocess.binder import request, serving


async def test_the_service_fences_calls_and_sessions(kubeconfig: Path, api: Api) -> None:
    async with serving(kubeconfig) as (_, channel):
        stub, stream = BinderServiceStub(channel), Stream(channel)
        device = {"example.com/device": "a"}
        asked = request(api.pod(), epoch=7, annotations={**device, "moorage.io/decision": "{}"})
        assert (await stream.ask(asked)).outcome == pb.OUTCOME_BOUND
        barrier = pb.BinderServiceBarrierRequest(epoch=8, holder="gateway-b")
        fenced = await stub.Barrier(barrier, timeout=50)
        assert (fenced.epoch, fenced.holder) == (8, "gateway-b")
        pod = pb.PodReference(namespace=asked.namespace, name=asked.name, uid=asked.uid)
        assert list(fenced.binds) == [pb.WrittenBind(pod=pod, node="node-a", annotations=device)]
        assert 0 < from_duration(fenced.memory) < 60
        again = await stub.Barrier(barrier, timeout=50)
        assert again.replica == fenced.replica != ""

        late = request(api.pod("late"), epoch=7)
        answer = await stream.ask(late)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Bind(late, timeout=50)
        assert answer.status.code == grpc.StatusCode.FAILED_PRECONDITION.value[0]
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        trailing = dict(caught.value.trailing_metadata() or ())
        assert answer.reason == trailing["moorage-reason"] == "STALE_EPOCH"
        late.epoch = 0
        assert (await stream.ask(late)).outcome == pb.OUTCOME_BOUND


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epoch": 0}, "epoch is missing"),
        ({"epoch": 2**63 - 1}, "which is a year ahead of the binder's clock"),
        ({"holder": ""}, "holder is ''"),
        ({"holder": "a b"}, "holder is 'a b'"),
        ({"holder": "a" * 254}, "must have 1 to 253"),
        ({"holder": "bell\a\n"}, r"holder is 'bell\x07\n'"),
    ],
)
async def test_barriers_without_sense_are_refused_and_fence_nothing(
    kubeconfig: Path, api: Api, change: dict[str, Any], message: str
) -> None:
    async with serving(kubeconfig) as (_, channel):
        stub = BinderServiceStub(channel)
        fields = {"epoch": 8, "holder": "gateway-b", **change}
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Barrier(pb.BinderServiceBarrierRequest(**fields), timeout=50)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert message in (caught.value.details() or "")
        asked = request(api.pod(), epoch=1)
        assert (await stub.Bind(asked, timeout=50)).outcome == pb.OUTCOME_BOUND


async def test_a_bind_with_an_epoch_that_leaves_no_higher_one_is_refused(
    kubeconfig: Path, api: Api
) -> None:
    async with serving(kubeconfig) as (_, channel):
        stub = BinderServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError, match="epoch is 18446744073709551615"):
            await stub.Bind(request(api.pod(), epoch=2**64 - 1), timeout=50)
        assert (await stub.Bind(request(api.read_pod(), epoch=1), timeout=50)).outcome


async def test_epochs_and_barriers_are_counted(kubeconfig: Path, api: Api) -> None:
    def value(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, labels) or 0.0

    def counted() -> list[float]:
        return [
            value("moorage_binds_fenced_total", stage="arrival"),
            value("moorage_barrier_seconds_count", result="held"),
            value("moorage_barrier_seconds_count", result="lost"),
        ]

    before = counted()
    async with serving(kubeconfig) as (_, channel):
        stub = BinderServiceStub(channel)
        for epoch in (8, 9, 7):
            barrier = pb.BinderServiceBarrierRequest(epoch=epoch, holder="gateway-b")
            await stub.Barrier(barrier, timeout=50)
        with pytest.raises(grpc.aio.AioRpcError, match="epoch 9 of gateway-b has begun"):
            await stub.Bind(request(api.pod(), epoch=8), timeout=50)
    assert counted() == [before[0] + 1, before[1] + 2, before[2] + 1]
    assert value("moorage_epoch") == 9


class TestBindHistory:
    now = 100.0

    def binds(self, limit: int = 100, age: float = 300) -> BindHistory:
        return BindHistory(limit, age, clock=lambda: self.now)

    def binding(self, name: str, node: str = "node-a") -> Binding:
        return Binding(namespace="default", name=name, uid=f"uid-{name}", node=node)

    def test_the_memory_is_as_long_as_the_binder_is_old_and_no_longer_than_allowed(self) -> None:
        binds = self.binds(age=60)
        assert binds.recall() == ([], 0.0)
        self.now += 10
        assert binds.recall() == ([], 10.0)
        self.now += 90
        assert binds.recall() == ([], 60.0)

    def test_binds_are_forgotten_when_they_are_too_old(self) -> None:
        binds = self.binds(age=60)
        binds.add(self.binding("old"), "node-a", unknown=False)
        self.now += 40
        binds.add(self.binding("new"), "node-a", unknown=True)
        self.now += 30
        kept, seconds = binds.recall()
        assert ([bind.name for bind in kept], seconds) == (["new"], 60.0)

    def test_too_many_binds_shorten_the_memory(self) -> None:
        binds = self.binds(limit=3)
        for number in range(5):
            self.now += 1
            binds.add(self.binding(str(number)), "node-a", unknown=False)
        self.now += 0.5
        kept, seconds = binds.recall()
        assert ([bind.name for bind in kept], seconds) == (["2", "3", "4"], 3.5)

    def test_without_room_nothing_is_remembered_and_that_is_admitted(self) -> None:
        binds = self.binds(limit=0)
        self.now += 10
        binds.add(self.binding("web"), "node-a", unknown=False)
        assert binds.recall() == ([], 0.0)

    def test_a_bind_that_becomes_known_is_the_newest(self) -> None:
        binds = self.binds()
        binds.add(self.binding("first"), "node-a", unknown=True)
        binds.add(self.binding("second"), "node-a", unknown=True)
        binds.add(self.binding("first"), "node-a", unknown=False)
        binds.discard("uid-second", "node-a")
        kept, _ = binds.recall()
        assert [(bind.name, bind.unknown) for bind in kept] == [("first", False)]
