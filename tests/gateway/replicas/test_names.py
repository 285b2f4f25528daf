"""The name of a Service leads to odd addresses, and calls go on while one of them is good."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.sharing import NAMES
from tools.inprocess.gateway import Gateway, filter_service, gateway, pod, ready, scorer_service
from tools.waiting import until

NAME = "filter.test"


class Addresses(list[tuple[str, int]]):
    """Addresses of the name, and how often it was looked up."""

    asked = 0


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Addresses:
    """Return the addresses that the name has; a test changes them."""
    addresses = Addresses()

    async def lookup(_: object, host: str, *args: Any, **kwargs: Any) -> list[Any]:
        addresses.asked += host == NAME
        if host == NAME and not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        given = addresses if host == NAME else [(host, int(args[0]))]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in given]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    return addresses


@asynccontextmanager
async def named(tmp_path: Path) -> AsyncIterator[Gateway]:
    """Run a gateway that looks for filters by the name; it knows the nodes."""
    async with (
        scorer_service() as scorer,
        gateway(
            tmp_path,
            filters=f"{NAME}:1",
            scorer=scorer,
            insecure=True,  # the name is no address of this machine
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


async def test_a_name_without_addresses_keeps_the_replicas_that_it_had(
    tmp_path: Path, found: Addresses
) -> None:
    async with filter_service() as address, named(tmp_path) as running:
        found.append(("127.0.0.1", port_of(address)))
        await ready(running)
        found.clear()
        looked = found.asked + 2
        await until(lambda: found.asked > looked)
        assert (await running.filter(pod(), *NAMES))["NodeNames"] == NAMES
        assert filters(running) == 1


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


async def test_what_answers_as_another_service_takes_no_part(
    tmp_path: Path, found: Addresses
) -> None:
    async with scorer_service() as other, filter_service() as right, named(tmp_path) as running:
        found.append(("127.0.0.1", port_of(other)))
        said = "filter at 127.0.0.1:\\d+: it answers as another service"

        async def noted() -> bool:
            return bool(re.search(said, str(await running.get("/readyz"))))

        await until(noted)
        assert filters(running) == 0
        found.append(("127.0.0.1", port_of(right)))
        await ready(running)
        assert filters(running) == 1
        assert (await running.filter(pod(), *NAMES))["NodeNames"] == NAMES
