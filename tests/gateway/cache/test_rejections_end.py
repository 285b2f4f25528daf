"""Rejections are remembered until anything changes: the state, the policy, or the replicas."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.cache.rejecting import (
    NAMES,
    asked,
    filter_twins,
    policy,
    remembered,
    running,
)
from tests.gateway.cache.remembering import of_set
from tests.gateway.running import Gateway, filter_service, gateway, pod, ready, scorer_service
from tests.live_api import until


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running(tmp_path) as found:
        yield found


async def _label(process: Gateway) -> None:
    process.api.label("/api/v1/nodes/n1", disk="ssd")


async def _bind(process: Gateway) -> None:
    process.api.pod("bound", nodeName="n2")


async def _add(process: Gateway) -> None:
    await process.node("n4")


@pytest.mark.parametrize("change", [_label, _bind, _add])
async def test_any_change_of_the_state_asks_again(process: Gateway, change: Any) -> None:
    await process.filter(of_set("first"), *NAMES)
    await process.filter(of_set("second"), *NAMES)
    assert (asked(process), remembered(process)) == (1, 1)
    await change(process)
    async with asyncio.timeout(10):
        while asked(process) == 1:
            await process.filter(of_set("later"), *NAMES)
    memories = remembered(process)
    await process.filter(of_set("last"), *NAMES)
    assert (asked(process), remembered(process)) == (2, memories + 1)


async def test_pods_fit_again_once_the_state_lets_them(tmp_path: Path) -> None:
    async with running(tmp_path, policy("NodeGroup")) as process:
        grouped = {"labels": {"nodeGroup": "a"}}
        for name in ("first", "second"):
            assert (await process.filter(of_set(name, **grouped), *NAMES))["NodeNames"] == []
        assert remembered(process) == 1
        process.api.label("/api/v1/nodes/n3", nodeGroup="a")
        async with asyncio.timeout(10):
            while not (await process.filter(of_set("third", **grouped), *NAMES))["NodeNames"]:
                pass


async def test_a_remembered_pod_waits_for_news_that_is_on_its_way(tmp_path: Path) -> None:
    async with running(tmp_path, policy("NodeGroup", "NodeAffinity")) as process:
        picky = {"nodeSelector": {"disk": "ssd"}}
        for name in ("first", "second"):
            assert (await process.filter(pod(name, **picky), *NAMES))["NodeNames"] == []
        assert (asked(process), remembered(process)) == (1, 1)
        loop = asyncio.get_running_loop()
        # As if kube-scheduler had heard of the label before the gateway.
        loop.call_later(0.02, lambda: process.api.label("/api/v1/nodes/n2", disk="ssd"))
        assert (await process.filter(pod("second", **picky), *NAMES))["NodeNames"] == ["n2"]
        assert (asked(process), remembered(process)) == (2, 2)
        assert (await process.filter(pod("third", **picky), *NAMES))["NodeNames"] == ["n2"]
        assert (asked(process), remembered(process)) == (3, 2)


async def test_another_policy_asks_again(tmp_path: Path) -> None:
    async with running(tmp_path, config_reload_interval=0.02) as process:
        await filter_twins(process)
        assert (asked(process), remembered(process)) == (1, 1)
        (tmp_path / "policy.yaml").write_text(policy("NodePorts"))
        await until(lambda: process.sample("moorage_policy_reloads_total", outcome="ok") == 1)
        assert (await process.filter(of_set("third"), *NAMES))["NodeNames"] == list(NAMES)


async def test_a_replica_that_is_new_is_asked_again(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        service = AsyncExitStack()
        address = await service.enter_async_context(filter_service())
        scorer = await stack.enter_async_context(scorer_service())
        process = await stack.enter_async_context(gateway(tmp_path, filters=address, scorer=scorer))
        await process.node(*NAMES)
        await ready(process)
        picky = {"nodeSelector": {"disk": "ssd"}}
        for name in ("first", "second"):
            await process.filter(pod(name, **picky), *NAMES)
        assert (asked(process), remembered(process)) == (1, 1)
        await service.aclose()
        port = int(address.rpartition(":")[2])
        await stack.enter_async_context(filter_service(port=port))
        await until(lambda: process.sample("moorage_sessions_opened_total", service="filter") == 2)
        await process.filter(pod("third", **picky), *NAMES)
        assert (asked(process), remembered(process)) == (2, 1)


async def test_once_a_replica_is_lost_the_others_are_asked_again(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        service = AsyncExitStack()
        addresses = [
            await service.enter_async_context(filter_service()),
            await stack.enter_async_context(filter_service()),
        ]
        scorer = await stack.enter_async_context(scorer_service())
        process = await stack.enter_async_context(
            gateway(tmp_path, filters=addresses, scorer=scorer)
        )
        await process.node(*NAMES)
        await until(lambda: process.sample("moorage_replicas_ready", service="filter") == 2)
        await ready(process)
        picky = {"nodeSelector": {"disk": "ssd"}}
        for name in ("first", "second"):
            await process.filter(pod(name, **picky), *NAMES)
        assert (asked(process), remembered(process)) == (1, 1)
        await service.aclose()
        await until(lambda: process.sample("moorage_replicas_ready", service="filter") == 1)
        await process.filter(pod("third", **picky), *NAMES)
        assert (asked(process), remembered(process)) == (2, 1)
