"""Pods that fit nowhere: equal ones are answered from memory until the state changes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage import FilterPlugin, Node, Pod, Rejection
from tests.gateway.running import Gateway, filter_service, gateway, pod, ready, scorer_service
from tests.live_api import Object, until

NAMES = ("n1", "n2", "n3")
TOO_HOT = Rejection("node is too hot", unresolvable=False)
TOO_OLD = Rejection("node is too old")


class Hot(FilterPlugin):
    """Rejects all nodes for pods that say so, by two reasons."""

    signs_pods = True

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if pod.labels.get("fits") == node.name:
            return None
        return TOO_OLD if node.name == "n3" else TOO_HOT


class Unsigned(Hot):
    """The same, but does not say that names do not matter."""


class Failing(Hot):
    """Fails for all pods."""

    signs_pods = True

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        raise ValueError("no")


def policy(*filters: str, failure_policy: str = "Abort") -> str:
    enabled = ", ".join(f"{{name: {name}}}" for name in filters)
    configs = ", ".join(f"{{name: {name}, failurePolicy: {failure_policy}}}" for name in filters)
    return (
        "apiVersion: moorage.io/v1alpha1\nkind: MoorageConfiguration\nprofiles:\n"
        f"- plugins: {{filter: {{enabled: [{enabled}]}}}}\n  pluginConfig: [{configs}]\n"
    )


@asynccontextmanager
async def running(
    folder: Path, text: str = policy("Hot"), *, replicas: int = 1, **more: Any
) -> AsyncIterator[Gateway]:
    file = folder / "policy.yaml"
    file.write_text(text)
    plugins = (Hot, Unsigned, Failing)
    async with (
        filter_service(*plugins) as one,
        filter_service(*plugins) as other,
        scorer_service() as scorer,
        gateway(
            folder, filters=(one, other)[:replicas], scorer=scorer, config=file, **more
        ) as process,
    ):
        await process.node(*NAMES)
        await ready(process)
        await until(lambda: process.sample("moorage_replicas_ready", service="filter") == replicas)
        yield process


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running(tmp_path) as found:
        yield found


def of_set(name: str, **metadata: Any) -> Object:
    """Build a pod of a Deployment, which differs from the others in whatever is its own."""
    made = pod(name)
    volume = {"name": f"kube-api-access-{name}", "projected": {"sources": []}}
    made["spec"]["volumes"] = [volume]
    made["status"] = {"phase": "Pending", "message": name}
    own = {"creationTimestamp": f"2026-11-22T00:00:{len(name):02}Z", "resourceVersion": name}
    made["metadata"] |= {"generateName": "web-", "labels": {"app": "web"}, **own, **metadata}
    return made


def asked(process: Gateway) -> float:
    return process.sample("moorage_cycle_duration_seconds_count", half="filter")


def remembered(process: Gateway) -> float:
    return process.sample("moorage_remembered_rejections_total")


async def filter_twins(process: Gateway) -> None:
    for name in ("first", "second"):
        await process.filter(of_set(name), *NAMES)


async def filter_record(process: Gateway, name: str) -> Object:
    _, answer = await process.get(f"/decisions/default/{name}")
    record: Object = answer["attempts"][0]["filter"]
    return record


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
    async with running(tmp_path, policy("NodeGroup")) as process:
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


async def test_another_policy_asks_again(tmp_path: Path) -> None:
    async with running(tmp_path, config_reload_interval=0.02) as process:
        await filter_twins(process)
        assert (asked(process), remembered(process)) == (1, 1)
        (tmp_path / "policy.yaml").write_text(policy("NodePorts"))
        await until(lambda: process.sample("moorage_policy_reloads_total", outcome="ok") == 1)
        assert (await process.filter(of_set("third"), *NAMES))["NodeNames"] == list(NAMES)


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
