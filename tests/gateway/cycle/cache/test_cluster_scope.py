"""Filters that depend on the whole cluster: cached until anything in it changes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.cycle.cache.caching import of_set
from tests.gateway.cycle.cache.rejecting import (
    NAMES,
    TOO_HOT,
    TOO_OLD,
    asked,
    cached,
    filter_equal_pods,
    filter_record,
    policy,
    running,
)
from tools.inprocess.api import Object, until
from tools.inprocess.gateway import Gateway, pod


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running(tmp_path) as found:
        yield found


async def test_pods_that_fit_nowhere_are_answered_without_asking_a_replica(
    process: Gateway,
) -> None:
    first, *others = await filter_equal_pods(process, 5)
    assert first["FailedNodes"] == dict.fromkeys(("n1", "n2"), TOO_HOT.reason)
    assert first["FailedAndUnresolvableNodes"] == {"n3": TOO_OLD.reason}
    assert first["NodeNames"] == []
    assert others == [first] * 4
    assert (asked(process), cached(process)) == (2, 3)
    assert await process.filter(of_set("turned"), *reversed(NAMES)) == first
    assert (asked(process), cached(process)) == (2, 4)


async def test_the_decision_names_the_pod_that_replicas_were_asked_about(process: Gateway) -> None:
    await filter_equal_pods(process)
    first, third = [await filter_record(process, name) for name in ("p0", "p2")]
    assert (third.pop("cachedFrom"), third.pop("cachedNodes")) == ("default/p1", 3)
    for record in (first, third):
        record.pop("seconds")
        for plugin in record["plugins"]:
            plugin.pop("seconds")
    assert third == first


async def test_pods_that_fit_somewhere_are_answered_from_the_cache_too(process: Gateway) -> None:
    for name in ("first", "second", "third"):
        answer = await process.filter(of_set(name, labels={"fits": "n2"}), *NAMES)
        assert answer["NodeNames"] == ["n2"]
    assert (asked(process), cached(process)) == (2, 1)


@pytest.mark.parametrize("plugins", [("Undeclared",), ("Hot", "Undeclared")])
async def test_undeclared_plugins_are_always_asked(
    tmp_path: Path, plugins: tuple[str, ...]
) -> None:
    async with running(tmp_path, policy(*plugins)) as process:
        await filter_equal_pods(process)
        assert (asked(process), cached(process)) == (3, 0)


async def test_the_least_recently_used_pods_are_forgotten(tmp_path: Path) -> None:
    async with running(tmp_path, cache_pods=2) as process:

        async def filter_twice(app: str) -> None:
            for name in (f"{app}1", f"{app}2"):
                await process.filter(of_set(name, labels={"app": app}), *NAMES)

        await filter_twice("a")
        await filter_twice("b")
        await filter_twice("a")
        assert (asked(process), cached(process)) == (4, 2)
        await filter_twice("c")
        await filter_twice("a")
        assert (asked(process), cached(process)) == (6, 4)
        await filter_twice("b")
        assert (asked(process), cached(process)) == (7, 5)


async def test_replicas_are_asked_about_further_nodes_only(process: Gateway) -> None:
    for name in ("first", "second"):
        await process.filter(of_set(name), "n1", "n2")
    part = await process.filter(of_set("part"), "n2", "new")
    assert part["FailedNodes"] == {"n2": TOO_HOT.reason}
    assert part["FailedAndUnresolvableNodes"] == {"new": "node(s) not known to Moorage yet"}
    record = await filter_record(process, "part")
    assert (record["nodes"], record["unknownNodes"]) == (2, 1)
    assert (asked(process), cached(process)) == (2, 1)
    whole = await process.filter(of_set("whole"), *NAMES)
    assert whole["FailedNodes"] == dict.fromkeys(("n1", "n2"), TOO_HOT.reason)
    assert whole["FailedAndUnresolvableNodes"] == {"n3": TOO_OLD.reason}
    record = await filter_record(process, "whole")
    assert (record["cachedFrom"], record["cachedNodes"]) == ("default/second", 2)
    assert {r["reason"]: r["nodes"] for r in record["plugins"][-1]["reasons"]} == {
        TOO_HOT.reason: 2,
        TOO_OLD.reason: 1,
    }


async def test_a_pod_that_has_a_place_is_asked_about(process: Gateway) -> None:
    await filter_equal_pods(process, 2)
    bound = process.api.pod("bound", nodeName="n1")
    await until(lambda: process.sample("moorage_cache_size", type="pods") == 1)
    same = of_set("bound", uid=bound["metadata"]["uid"])
    for _ in range(3):
        await process.filter(same, *NAMES)
    assert (asked(process), cached(process)) == (5, 0)


async def test_preemption_single_plugins_and_whole_nodes_are_asked_about(process: Gateway) -> None:
    def node(name: str) -> Object:
        return {"metadata": {"name": name}, "status": {"allocatable": {"pods": "9"}}}

    await filter_equal_pods(process, 2)
    victims: Object = {"n1": {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}}
    body = {"Pod": of_set("third"), "NodeNameToMetaVictims": victims}
    assert await process.call("preempt", body) == (200, {"NodeNameToMetaVictims": {}})
    nodes = {"items": [node(name) for name in NAMES]}
    for verb, more in (("filter/Hot", {"NodeNames": NAMES}), ("filter", {"Nodes": nodes})):
        for name in ("fourth", "fifth"):
            _, answer = await process.call(verb, {"Pod": of_set(name), **more})
            assert len(answer["FailedNodes"]) == 2
    assert (asked(process), cached(process)) == (7, 0)


async def test_failures_are_not_cached(tmp_path: Path) -> None:
    text = policy("Failing", "Hot", failure_policy="Ignore")
    async with running(tmp_path, text) as process:
        answers = await filter_equal_pods(process, 4)
        assert [answer["NodeNames"] for answer in answers] == [[]] * 4
        assert cached(process) == 0


async def test_verdicts_of_several_replicas_are_cached(tmp_path: Path) -> None:
    async with running(tmp_path, replicas=2, min_nodes_per_shard=1, min_shard_time=0) as process:
        first, *others = await filter_equal_pods(process)
        assert (await filter_record(process, "p1"))["shards"] == 2
        assert others == [first] * 2
        assert (asked(process), cached(process)) == (2, 1)


async def _label(process: Gateway) -> None:
    process.api.label("/api/v1/nodes/n1", disk="ssd")


async def _bind(process: Gateway) -> None:
    process.api.pod("bound", nodeName="n2")


async def _add(process: Gateway) -> None:
    await process.node("n4")


@pytest.mark.parametrize("change", [_label, _bind, _add])
async def test_any_change_of_the_cluster_asks_again(process: Gateway, change: Any) -> None:
    await filter_equal_pods(process)
    assert (asked(process), cached(process)) == (2, 1)
    await change(process)
    async with asyncio.timeout(10):
        while asked(process) == 2:
            await process.filter(of_set("later"), *NAMES)
    before = cached(process)
    await process.filter(of_set("last"), *NAMES)
    assert (asked(process), cached(process)) == (3, before + 1)


async def test_a_cached_rejection_waits_for_newer_state_when_tried_again(tmp_path: Path) -> None:
    async with running(tmp_path, policy("NodeAffinity")) as process:
        picky = {"nodeSelector": {"disk": "ssd"}}
        for name in ("first", "second", "third"):
            assert (await process.filter(pod(name, **picky), *NAMES))["NodeNames"] == []
        assert cached(process) == 1
        loop = asyncio.get_running_loop()
        # As if kube-scheduler had seen the label before the gateway.
        loop.call_later(0.02, lambda: process.api.label("/api/v1/nodes/n2", disk="ssd"))
        assert (await process.filter(pod("third", **picky), *NAMES))["NodeNames"] == ["n2"]


async def test_another_policy_asks_again(tmp_path: Path) -> None:
    async with running(tmp_path, config_reload_interval=0.02) as process:
        await filter_equal_pods(process)
        (tmp_path / "policy.yaml").write_text(policy("NodePorts"))
        await until(lambda: process.sample("moorage_policy_reloads_total", outcome="ok") == 1)
        assert (await process.filter(of_set("last"), *NAMES))["NodeNames"] == list(NAMES)
