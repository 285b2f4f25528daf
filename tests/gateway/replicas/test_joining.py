"""How replicas are found, and what one gets when it joins while cycles go on."""

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from gateway.replicas.dns import Resolver
from gateway.replicas.feed import PART_BYTES, in_parts
from gateway.scheduling.queue import CycleQueue
from moorage.v1 import types_pb2 as pb
from sandbox.apiserver import Fault
from tests.manifests import node
from tools.inprocess.gateway import (
    Options,
    filter_service,
    gateway,
    plane,
    pod,
    ready,
    scorer_service,
)
from tools.waiting import until

NAMES = [f"n{number}" for number in range(40)]


class Listener:
    """A gate that notes what a replica is sent, and holds parts of snapshots back on demand.

    Attributes:
        full: Snapshots that began.
        nodes: Nodes in them.
        pods: Pods in them.
        open: Parts wait for this.
        parts: Parts that came.
        ended: Whether the last part of the last one came.
    """

    def __init__(self) -> None:
        self.full = self.nodes = self.pods = self.parts = 0
        self.ended = False
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, request: Any) -> bool:
        if request.HasField("state") and (request.state.full or not self.ended):
            self.full += request.state.full
            self.nodes += len(request.state.nodes)
            self.pods += len(request.state.pods)
            self.parts += 1
            self.ended = not request.state.partial
            await self.open.wait()
        return True


def refuses(resource: str) -> Fault:
    return Fault(resource=resource, status=503, times=1000)


@pytest.mark.parametrize("resource", ["nodes", "pods"])
async def test_replicas_get_the_state_when_the_cluster_has_been_read(
    tmp_path: Path, resource: str
) -> None:
    told = {"filter": Listener(), "scorer": Listener()}
    async with (
        filter_service(gate=told["filter"]) as filters,
        scorer_service(gate=told["scorer"]) as scorer,
        gateway(tmp_path, filters=filters, scorer=scorer, fault=refuses(resource)) as running,
    ):
        for name in NAMES:
            running.api.create("/api/v1/nodes", node(name))

        async def waits() -> bool:
            _, answer = await running.get("/readyz?verbose")
            return f"filter at {filters} waits for nodes and pods" in str(answer)

        await until(waits)
        assert not any(listener.parts for listener in told.values())
        running.api.faults.clear()
        await ready(running)
        answer = await running.filter(pod(), *NAMES)
        assert (answer["Error"], answer["NodeNames"]) == ("", NAMES)
        await until(lambda: running.sample("moorage_replicas_ready", service="scorer") == 1)
        for service, listener in told.items():
            assert (listener.full, listener.nodes) == (1, len(NAMES))
            assert running.sample("moorage_sessions_opened_total", service=service) == 1


async def test_a_replica_that_takes_long_to_get_everything_is_told_what_changes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.replicas.feed.PART", 2)
    slow = Listener()
    options: Options = {"filter_gates": (slow,), "fault": refuses("pods"), "kept_changes": 10}
    async with plane(tmp_path, nodes=NAMES, waits=False, **options) as running:
        slow.open.clear()
        running.api.faults.clear()
        await until(lambda: slow.parts)
        for name in NAMES:
            running.api.pod(f"on-{name}", nodeName=name)
        await until(lambda: running.sample("moorage_cache_size", type="pods") == len(NAMES))
        slow.open.set()
        await ready(running)
        assert (slow.full, slow.pods) == (1, len(NAMES))
        assert running.sample("moorage_sessions_opened_total", service="filter") == 1


async def test_the_gateway_is_ready_when_the_first_scorer_has_everything(tmp_path: Path) -> None:
    slow = Listener()
    slow.open.clear()
    options: Options = {
        "nodes": ("n1", "n2"),
        "scorer_gates": (slow,),
        "waits": False,
        "scorer_wait": 0,
    }
    async with plane(tmp_path, **options) as running:
        await until(lambda: slow.parts)
        await until(lambda: running.sample("moorage_replicas_ready", service="filter") == 1)
        status, answer = await running.get("/readyz?verbose")
        assert status == 503
        assert re.search(r"scorer at \S+ is sent the state of the cluster", str(answer))
        slow.open.set()
        await ready(running)
        assert len(await running.prioritize(pod(), "n1", "n2")) == 2


async def test_cycles_come_first() -> None:
    queue, order = CycleQueue(), list[str]()

    async def cycle(name: str) -> None:
        async with queue.turn():
            await asyncio.sleep(0)
            order.append(name)

    async def part() -> None:
        await queue.wait_until_idle(longest=60)
        order.append("part")

    async with asyncio.TaskGroup() as group:
        for name in ("runs", "waits"):
            group.create_task(cycle(name))
        group.create_task(part())
    assert order == ["runs", "waits", "part"]
    async with queue.turn(), asyncio.timeout(50):  # a replica joins though cycles go on
        await queue.wait_until_idle(longest=0.001)


CONTENT = b"x" * 300_000
KIND = pb.ObjectKind(api_version="apps/v1", plural="statefulsets")


def state(count: int) -> pb.State:
    """Return a change with so many nodes, pods and objects of 300 kB each."""
    return pb.State(
        generation=7,
        removed_rows=[90],
        removed_pods=["gone"],
        kinds=[KIND],
        nodes=[pb.NodeRow(row=row, json=CONTENT) for row in range(count)],
        pods=[pb.PlacedPod(row=row, json=CONTENT) for row in range(count)],
        objects=[
            pb.Object(reference=pb.ObjectReference(kind=KIND, name=f"{i}"), json=CONTENT)
            for i in range(count)
        ],
    )


def test_a_long_state_is_sent_in_parts_that_make_it_up_again() -> None:
    whole = state(20)
    parts = list(in_parts(whole))
    assert len(parts) > 5
    assert max(part.ByteSize() for part in parts) <= PART_BYTES + len(CONTENT) + 1000
    assert [part.partial for part in parts] == [True] * (len(parts) - 1) + [False]
    assert {part.generation for part in parts} == {7}
    joined = pb.State()
    for part in parts:
        joined.MergeFrom(part)
    joined.partial = False
    assert joined == whole
    assert list(parts[0].removed_pods) == ["gone"], "removals come first"
    whole.full = whole.partial = True
    first, *others = in_parts(whole)
    assert first.full
    assert all(part.partial and not part.full for part in others)
    short = state(1)
    assert [part is short for part in in_parts(short)] == [True]


async def test_a_name_that_cannot_be_looked_up_keeps_its_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {"filters": ["10.0.0.1", "10.0.0.2"], "others": ["fd00::1"]}

    async def lookup(_: object, host: str, port: str, **kwargs: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [(0, 0, 0, "", (each, int(port))) for each in known[host]]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    resolver = Resolver(("filters:50051", "dns:///others:50052"))
    everything = {"10.0.0.1:50051", "10.0.0.2:50051", "[fd00::1]:50052"}
    assert await resolver.addresses() == everything
    assert resolver.problem == ""

    del known["filters"]
    assert await resolver.addresses() == everything
    assert "cannot resolve filters:50051: Temporary failure" in resolver.problem

    known["filters"] = ["10.0.0.2"]
    assert await resolver.addresses() == {"10.0.0.2:50051", "[fd00::1]:50052"}
    assert resolver.problem == ""
