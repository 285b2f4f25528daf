"""Pods that fit nowhere: equal ones are answered from memory, others are not."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.cache.rejecting import (
    NAMES,
    TOO_HOT,
    TOO_OLD,
    asked,
    filter_record,
    filter_twins,
    policy,
    remembered,
    running,
)
from tests.gateway.cache.remembering import of_set
from tests.gateway.running import Gateway
from tests.live_api import Object, until


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running(tmp_path) as found:
        yield found


async def test_equal_pods_are_answered_without_asking_a_replica(process: Gateway) -> None:
    first = await process.filter(of_set("first"), *NAMES)
    assert first["FailedNodes"] == dict.fromkeys(("n1", "n2"), TOO_HOT.reason)
    assert first["FailedAndUnresolvableNodes"] == {"n3": TOO_OLD.reason}
    assert first["NodeNames"] == []
    assert (asked(process), remembered(process)) == (1, 0)
    for number in range(5):
        assert await process.filter(of_set(f"p{number}"), *NAMES) == first
    assert await process.filter(of_set("turned"), *reversed(NAMES)) == first
    assert (asked(process), remembered(process)) == (1, 6)


async def test_the_decision_says_from_which_pod_it_was_taken(process: Gateway) -> None:
    for name in ("first", "second", "third"):
        await process.filter(of_set(name), *NAMES)
    first, third = [await filter_record(process, name) for name in ("first", "third")]
    assert (third.pop("rememberedFrom"), third.pop("rememberedNodes")) == ("default/first", 3)
    assert third == first
    (hot,) = [plugin for plugin in first["plugins"] if plugin["plugin"] == "Hot"]
    assert hot["rejected"] == first["nodes"] == 3
    _, answer = await process.get("/decisions/default/third")
    _, original = await process.get("/decisions/default/first")
    for field in ("generation", "policyRevision"):
        assert answer["attempts"][0][field] == original["attempts"][0][field]


@pytest.mark.parametrize(
    "other",
    [
        {"labels": {"app": "web", "tier": "db"}},
        {"annotations": {"example.com/zone": "a"}},
        {"namespace": "team"},
        {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-2", "uid": "2"}]},
    ],
)
async def test_a_pod_that_differs_is_asked_about(process: Gateway, other: Object) -> None:
    await process.filter(of_set("first"), *NAMES)
    await process.filter(of_set("other", **other), *NAMES)
    assert (asked(process), remembered(process)) == (2, 0)


async def test_a_pod_with_another_spec_is_asked_about(process: Gateway) -> None:
    await process.filter(of_set("first"), *NAMES)
    other = of_set("other")
    other["spec"]["nodeSelector"] = {"disk": "ssd"}
    await process.filter(other, *NAMES)
    assert (asked(process), remembered(process)) == (2, 0)


async def test_a_pod_that_fits_somewhere_is_not_remembered(process: Gateway) -> None:
    for name in ("first", "second"):
        answer = await process.filter(of_set(name, labels={"fits": "n2"}), *NAMES)
        assert answer["NodeNames"] == ["n2"]
    assert (asked(process), remembered(process)) == (2, 0)


@pytest.mark.parametrize(
    "plugins", [("Unsigned",), ("Hot", "Unsigned"), ("Hot", "StatefulSetZone")]
)
async def test_plugins_that_do_not_sign_are_always_asked(
    tmp_path: Path, plugins: tuple[str, ...]
) -> None:
    async with running(tmp_path, policy(*plugins)) as process:
        await filter_twins(process)
        assert (asked(process), remembered(process)) == (2, 0)


async def test_nothing_is_remembered_if_the_setting_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, remembered_rejections=0) as process:
        await filter_twins(process)
        assert (asked(process), remembered(process)) == (2, 0)


async def test_the_pods_that_were_asked_about_last_are_remembered(tmp_path: Path) -> None:
    async with running(tmp_path, remembered_rejections=2) as process:
        for app in ("a", "b", "a", "c"):
            await process.filter(of_set(app, labels={"app": app}), *NAMES)
        assert (asked(process), remembered(process)) == (3, 1)
        await process.filter(of_set("a", labels={"app": "a"}), *NAMES)
        assert (asked(process), remembered(process)) == (3, 2)
        await process.filter(of_set("b", labels={"app": "b"}), *NAMES)
        assert (asked(process), remembered(process)) == (4, 2)


async def test_a_part_of_the_nodes_is_answered_and_further_ones_are_asked_about(
    process: Gateway,
) -> None:
    await process.filter(of_set("first"), "n1", "n2")
    part = await process.filter(of_set("part"), "n2", "new")
    assert part["FailedNodes"] == {"n2": TOO_HOT.reason}
    assert part["FailedAndUnresolvableNodes"] == {"new": "node(s) not known to Moorage yet"}
    record = await filter_record(process, "part")
    assert (record["nodes"], record["unknownNodes"]) == (2, 1)
    assert [reason["nodes"] for reason in record["plugins"][-1]["reasons"]] == [1]
    part = await process.filter(of_set("other-part"), "n2", "newer")
    assert list(part["FailedAndUnresolvableNodes"]) == ["newer"]
    assert (asked(process), remembered(process)) == (1, 2)

    await process.filter(of_set("further"), "n2", "n3")
    assert (asked(process), remembered(process)) == (2, 2)
    whole = await process.filter(of_set("whole"), *NAMES)
    assert whole["FailedNodes"] == dict.fromkeys(("n1", "n2"), TOO_HOT.reason)
    assert whole["FailedAndUnresolvableNodes"] == {"n3": TOO_OLD.reason}
    record = await filter_record(process, "whole")
    assert record["rememberedFrom"] == "default/further"
    assert {r["reason"]: r["nodes"] for r in record["plugins"][-1]["reasons"]} == {
        TOO_HOT.reason: 2,
        TOO_OLD.reason: 1,
    }
    assert (asked(process), remembered(process)) == (2, 3)


async def test_a_pod_that_has_a_place_is_asked_about(process: Gateway) -> None:
    await process.filter(of_set("first"), *NAMES)
    bound = process.api.pod("bound", nodeName="n1")
    await until(lambda: process.sample("moorage_cache_size", type="pods") == 1)
    same = of_set("bound", uid=bound["metadata"]["uid"])
    for _ in range(2):
        await process.filter(same, *NAMES)
    await process.filter(of_set("second"), *NAMES)
    assert remembered(process) == 0
    await process.filter(of_set("third"), *NAMES)
    assert remembered(process) == 1


async def test_preemption_is_asked_about(process: Gateway) -> None:
    await process.filter(of_set("first"), *NAMES)
    victims: Object = {"n1": {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}}
    body = {"Pod": of_set("second"), "NodeNameToMetaVictims": victims}
    assert await process.call("preempt", body) == (200, {"NodeNameToMetaVictims": {}})
    assert (asked(process), remembered(process)) == (2, 0)


async def test_one_plugin_alone_and_whole_nodes_are_asked_about(process: Gateway) -> None:
    def node(name: str) -> Object:
        return {"metadata": {"name": name}, "status": {"allocatable": {"pods": "9"}}}

    await process.filter(of_set("first"), *NAMES)
    nodes = {"items": [node(name) for name in NAMES]}
    for verb, more in (("filter/Hot", {"NodeNames": NAMES}), ("filter", {"Nodes": nodes})):
        for name in ("second", "third"):
            _, answer = await process.call(verb, {"Pod": of_set(name), **more})
            assert len(answer["FailedNodes"]) == 2
    assert (asked(process), remembered(process)) == (5, 0)


async def test_what_a_plugin_failed_in_is_not_remembered(tmp_path: Path) -> None:
    text = policy("Failing", "Hot", failure_policy="Ignore")
    async with running(tmp_path, text) as process:
        for name in ("first", "second"):
            assert (await process.filter(of_set(name), *NAMES))["NodeNames"] == []
        assert (asked(process), remembered(process)) == (2, 0)


async def test_what_several_replicas_said_is_remembered(tmp_path: Path) -> None:
    async with running(tmp_path, replicas=2, min_nodes_per_shard=1, min_shard_time=0) as process:
        first = await process.filter(of_set("first"), *NAMES)
        assert (await filter_record(process, "first"))["shards"] == 2
        assert await process.filter(of_set("second"), *NAMES) == first
        assert (asked(process), remembered(process)) == (1, 1)
