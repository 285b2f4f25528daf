"""Odd addresses and certificates of replicas; calls go on while one of them is good."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from moorage import FilterPlugin
from moorage.v1 import types_pb2 as pb
from moorage.v1.replica_pb2 import SessionResponse
from moorage.v1.replica_pb2_grpc import add_ReplicaServiceServicer_to_server
from moorage.version import works_with
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.errors import OTHER_NAME
from services.filter.servicer import FilterServicer
from tests.gateway.sharing import NAMES
from tools.inprocess.certificates import authority, write_folder
from tools.inprocess.gateway import (
    Gateway,
    Held,
    filter_service,
    gateway,
    pod,
    ready,
    scorer_service,
)
from tools.waiting import until

NAME = "filter.test"


Addresses = list[tuple[Any, ...]]


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Addresses:
    """Return the addresses that the name has; a test changes them."""
    addresses: Addresses = []

    async def lookup(_: object, host: str, *args: Any, **kwargs: Any) -> list[Any]:
        if host == NAME and not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        given = addresses if host == NAME else [(host, int(args[0]))]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in given]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    return addresses


@asynccontextmanager
async def named(tmp_path: Path, tls: Path | None = None) -> AsyncIterator[Gateway]:
    """Run a gateway that looks for filters by the name; it knows the nodes."""
    async with (
        scorer_service(tls=tls) as scorer,
        gateway(
            tmp_path,
            filters=f"{NAME}:1",
            scorer=scorer,
            tls=tls,
            insecure=not tls,  # the name is no address of this machine
            resolve_interval=0.1,
            http_timeout=60.0,
        ) as running,
    ):
        await running.node(*NAMES)
        yield running


def filters(running: Gateway) -> float:
    return running.sample("moorage_replicas_ready", service="filter") or 0.0


async def test_an_address_that_comes_twice_is_one_replica(tmp_path: Path, found: Addresses) -> None:
    async with filter_service() as first, filter_service() as second, named(tmp_path) as running:
        found += [("127.0.0.1", port_of(each)) for each in (first, second, first, first)]
        await until(lambda: filters(running) == 2)
        await ready(running)
        assert (await running.filter(pod(), *NAMES))["NodeNames"] == NAMES
        assert running.sample("moorage_sessions_opened_total", service="filter") == 2


async def test_all_addresses_may_change_at_once(tmp_path: Path, found: Addresses) -> None:
    async with AsyncExitStack() as stack:
        addresses = [await stack.enter_async_context(filter_service()) for _ in range(4)]
        running = await stack.enter_async_context(named(tmp_path))
        places = [("127.0.0.1", port_of(each)) for each in addresses]
        found += places[:2]
        await until(lambda: filters(running) == 2)
        await ready(running)
        answers = []
        for number in range(30):
            if number == 10:
                found[:] = places[2:]
            answers.append(await running.filter(pod(f"p{number}", cpu=f"{number}m"), *NAMES))
        assert [each["Error"] for each in answers] == [""] * 30
        await until(lambda: running.sample("moorage_sessions_opened_total", service="filter") == 4)
        await until(lambda: filters(running) == 2)
        assert (await running.filter(pod("last"), *NAMES))["NodeNames"] == NAMES


async def test_a_replica_that_leaves_the_service_finishes_its_work(
    tmp_path: Path, found: Addresses
) -> None:
    held = Held()
    async with (
        filter_service(gate=held) as leaving,
        filter_service() as other,
        named(tmp_path) as running,
    ):
        found.append(("127.0.0.1", port_of(leaving)))
        await ready(running)
        answer = asyncio.create_task(running.filter(pod(), *NAMES))
        await until(lambda: held.came)
        found[:] = [("127.0.0.1", port_of(other))]
        opened = "moorage_sessions_opened_total"
        await until(lambda: running.sample(opened, service="filter") == 2 and filters(running) == 1)
        held.opened.set()
        assert (await answer)["NodeNames"] == NAMES


@pytest.mark.parametrize("secured", [False, True], ids=["plain", "TLS"])
async def test_replicas_may_have_addresses_of_ipv6(
    tmp_path: Path, found: Addresses, secured: bool
) -> None:
    roles = ("gateway", "filter", "scorer", "operator", "scheduler")
    names = [*(f"moorage-{role}" for role in roles), "127.0.0.1", "::1"]
    tls = write_folder(tmp_path / "tls", authority(), *names) if secured else None
    async with AsyncExitStack() as stack:
        four = await stack.enter_async_context(filter_service(tls=tls))
        running = await stack.enter_async_context(named(tmp_path, tls))
        async with filter_service(host="::1", tls=tls) as six:
            assert six == f"[::1]:{port_of(six)}"
            found += [("127.0.0.1", port_of(four)), ("::1", port_of(six), 0, 0)]
            await until(lambda: filters(running) == 2)
            await ready(running)
            _, answer = await running.get("/replicas")
            replicas = answer["services"][0]["replicas"]
            assert {each["place"] for each in replicas} == {four, six}
            del found[0]
            await until(lambda: filters(running) == 1)
            assert (await running.filter(pod(), *NAMES))["NodeNames"] == NAMES

        async def named_in_brackets() -> bool:
            return f"filter at {six}" in str(await running.get("/readyz"))

        await until(named_in_brackets)


class Newer(FilterServicer):
    """A filter of a later version, which notes what it is sent."""

    def __init__(self) -> None:
        super().__init__(Registry(FilterPlugin))
        self.sent: list[Any] = []

    async def Session(
        self, request_iterator: AsyncIterator[Any], context: Any
    ) -> AsyncIterator[Any]:
        plugin = pb.Plugin(name="NodeName", extension_points=["Filter"])
        hello = pb.Hello(replica="newer", plugins=[plugin], moorage_version="99.1\x1b[2J")
        yield SessionResponse(hello=hello)
        async for request in request_iterator:
            self.sent.append(request)


@asynccontextmanager
async def program(servicer: FilterServicer | None = None) -> AsyncIterator[str]:
    server = grpc.aio.server()
    if servicer is not None:
        add_ReplicaServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("another service", "answers as another service"),
        ("later version", r"runs Moorage 99\.1\S*, too far from \d"),
        ("other messages", r"does not serve /moorage\.v1\.ReplicaService/Session"),
    ],
)
async def test_what_is_no_such_replica_is_named_and_takes_no_part(
    tmp_path: Path, found: Addresses, kind: str, said: str
) -> None:
    newer = Newer()
    programs = {
        "another service": scorer_service(),
        "later version": program(newer),
        "other messages": program(),
    }
    async with (
        programs[kind] as other,
        filter_service() as right,
        named(tmp_path) as running,
    ):
        found.append(("127.0.0.1", port_of(other)))

        async def noted() -> bool:
            answer = await running.get("/readyz?verbose")
            return bool(re.search(f"filter at {other} {said}", str(answer)))

        await until(noted)
        assert filters(running) == 0
        found.append(("127.0.0.1", port_of(right)))
        await ready(running)
        for name in "abc":
            assert (await running.filter(pod(name), *NAMES))["NodeNames"] == NAMES
        assert await noted(), "it is named beside replicas that work"
        assert filters(running) == 1
        assert newer.sent == []


@pytest.mark.parametrize(
    ("one", "other", "works"),
    [
        ("0.2.0", "0.2.7", True),
        ("0.2.0", "0.3.1", True),
        ("0.4.0", "0.2.9", False),
        ("0.9.9", "1.0.0", True),
        ("0.9.9", "1.1.0", False),
        ("1.0.0", "3.0.0", False),
        ("", "0.2.0", True),
        ("0+unknown", "0.9.0", True),
    ],
)
def test_versions_work_with_the_next_minor_one(one: str, other: str, works: bool) -> None:
    assert works_with(one, other) == works_with(other, one) == works


OURS = authority()
WITH_SHADOW = """
apiVersion: moorage.io/v1alpha1
kind: MoorageConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: InTree}]}}
  shadow: {plugins: {filter: {disabled: [{name: NodeName}]}}}
"""


@pytest.mark.parametrize(
    ("asked", "named", "takes_part"),
    [
        ("filter", "filter", True),
        ("filter", "shadow-filter", False),
        ("filter", "scorer", False),
        ("shadow-filter", "shadow-filter", True),
        ("shadow-filter", "filter", False),
    ],
)
async def test_a_replica_takes_part_as_what_its_certificate_names(
    tmp_path: Path, asked: str, named: str, takes_part: bool
) -> None:
    def folder(*names: str) -> Path:
        own = [f"moorage-{name}" for name in names]
        return write_folder(tmp_path / "-".join(names), OURS, *own, "127.0.0.1")

    (tmp_path / "policy.yaml").write_text(WITH_SHADOW)
    live = folder("filter", "scorer", "live")
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        replica = await enter(filter_service(tls=folder(named)))
        targets: dict[str, Any] = {"filters": replica}
        if asked == "shadow-filter":
            filters = await enter(filter_service(tls=live))
            targets = {"filters": filters, "shadow_filter": (replica,)}
        process = await enter(
            gateway(
                tmp_path,
                scorer=await enter(scorer_service(tls=live)),
                config=tmp_path / "policy.yaml",
                tls=folder("gateway", "operator"),
                **targets,
            )
        )
        refused = f"{asked} at {replica}: UNAVAILABLE"
        said = ""

        async def is_known() -> bool:
            nonlocal said
            said = str((await process.get("/readyz"))[1])
            is_ready = process.sample("moorage_replicas_ready", service=asked) == 1
            return is_ready or refused in said

        await until(is_known)
        assert (process.sample("moorage_replicas_ready", service=asked) == 1) is takes_part
        if not takes_part:
            assert OTHER_NAME in said
