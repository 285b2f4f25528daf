"""Pods, calls and profiles for which replicas are asked each time."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage import FilterPlugin, Node, Pod, Rejection, Scope, ScorePlugin, Scores
from tests.gateway.cycle.cache.caching import (
    NAMES,
    TAINTED,
    Asked,
    answered,
    caching,
    decided,
    fill,
    node,
    noting,
    of_set,
    place_all,
    policy,
    remembered,
)
from tests.gateway.sharing import place, same
from tools.inprocess.api import Object, until
from tools.inprocess.gateway import Gateway


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with caching(tmp_path, *noting(Asked())) as found:
        await fill(found)
        yield found


@pytest.mark.parametrize(
    "other",
    [
        {"labels": {"app": "web", "tier": "db"}},
        {"annotations": {"example.com/zone": "a"}},
        {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-2", "uid": "2"}]},
        {"namespace": "team"},
    ],
)
async def test_a_pod_that_differs_is_asked_about(process: Gateway, other: Object) -> None:
    await place_all(process, "first", "second")
    made = of_set("other", **other)
    answer = await process.filter(made, *NAMES)
    await process.prioritize(made, *answer["NodeNames"])
    assert answered(process) == (3, 3)
    decision = await decided(process, "other", other.get("namespace", "default"))
    assert "cachedNodes" not in {**decision["filter"], **decision["score"]}


async def test_a_pod_with_another_spec_is_asked_about(process: Gateway) -> None:
    await place_all(process, "first", "second")
    other = of_set("other")
    other["spec"]["nodeSelector"] = {"disk": "ssd"}
    await place(process, other, NAMES)
    assert answered(process) == (3, 3)


async def test_a_pod_that_has_a_place_is_asked_about(process: Gateway) -> None:
    await place_all(process, "first", "second")
    bound = process.api.pod("bound", nodeName="n1")
    await until(lambda: process.sample("moorage_cache_size", type="pods") == 1)
    placed = await place(process, of_set("bound", uid=bound["metadata"]["uid"]), NAMES)
    assert answered(process) == (3, 3)
    assert placed["scores"]["n1"] == 17, "it does not count itself"
    other = await place(process, of_set("third"), NAMES)
    assert other["scores"]["n1"] > placed["scores"]["n1"]


async def test_one_plugin_alone_whole_nodes_and_preemption_are_asked_about(
    process: Gateway,
) -> None:
    await place_all(process, "first", "second")
    for number, name in enumerate(("third", "fourth"), start=1):
        _, answer = await process.call("filter/Fits", {"Pod": of_set(name), "NodeNames": NAMES})
        assert answer["NodeNames"] == ["n1", "n2", "n3"]
        await process.call("prioritize/Likes", {"Pod": of_set(name), "NodeNames": NAMES})
        assert answered(process) == (2 + number, 2 + number)
    given = {"items": [node("n1", taint="new"), node("n2"), node("n3")]}
    for number, name in enumerate(("fifth", "sixth"), start=1):
        _, answer = await process.call("filter", {"Pod": of_set(name), "Nodes": given})
        assert answer["FailedAndUnresolvableNodes"] == {"n1": TAINTED.reason}
        await process.call("prioritize", {"Pod": of_set(name), "Nodes": {"items": given["items"]}})
        assert answered(process)[0] == 4 + number
    before = answered(process)[0]
    victims: Object = {"n4": {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}}
    body = {"Pod": of_set("seventh"), "NodeNameToMetaVictims": victims}
    assert await process.call("preempt", body) == (200, {"NodeNameToMetaVictims": {}})
    assert answered(process)[0] == before + 1
    (last,) = await place_all(process, "last")
    assert last["filter"]["NodeNames"] == ["n1", "n2", "n3"]


class Random(FilterPlugin):
    """Says of no node that it depends on nothing else."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None


class Reserving(FilterPlugin):
    """Looks at a node only, but has to know where pods go."""

    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None

    def wants_claim(self, pod: Pod) -> bool:
        return pod.labels.get("claims") == "yes"


class Curved(ScorePlugin):
    """Has its own idea of how scores become 0..100, which only replicas know."""

    depends_on = Scope.NODE

    def score_node(self, pod: Pod, node: Node) -> float:
        return float(node.labels.get("liked", "1"))

    def normalize(self, scores: Scores) -> Scores:
        return 100 - scores


EQUAL = "{name: Likes}, {name: Equal}"


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        (policy("{name: Fits}, {name: Random}"), (0, 3)),
        (policy("{name: Fits}, {name: Reserving}"), (0, 3)),
        (policy(scores=EQUAL + ", {name: ImageLocality}"), (5, 3)),
        (policy(scores=EQUAL + ", {name: Curved}"), (5, 0)),
        (policy(scores=""), (5, 0)),
        (policy(), (5, 3)),
    ],
)
async def test_a_phase_is_cached_if_all_its_plugins_allow_it(
    tmp_path: Path, text: str, nodes: Any
) -> None:
    plugins = (*noting(Asked()), Random, Reserving, Curved)
    async with caching(tmp_path, *plugins, text=text) as process:
        await fill(process)
        placed = await place_all(process, "first", "second", "third")
        same(placed[0], placed[2])
        assert await remembered(process, "third") == nodes


async def test_a_claim_is_chosen_anew_for_each_pod(tmp_path: Path) -> None:
    text = policy("{name: Fits}, {name: Reserving}")
    async with caching(tmp_path, *noting(Asked()), Reserving, text=text) as process:
        await fill(process)
        for name in ("first", "second", "third"):
            own = process.api.pod(name, schedulerName="moorage")["metadata"]["uid"]
            answer = await process.filter(of_set(name, labels={"claims": "yes"}, uid=own), *NAMES)
            assert answer["NodeNames"] == ["n3"]
        assert process.sample("moorage_cache_size", type="claims") == 3
        assert answered(process)[0] == 3, "each pod is asked about once"
        assert "cachedNodes" not in (await decided(process, "third"))["filter"]


async def test_nothing_is_cached_if_the_setting_says_so(tmp_path: Path) -> None:
    async with caching(tmp_path, *noting(Asked()), cache_pods=0) as process:
        await fill(process)
        first, _, third = await place_all(process, "first", "second", "third")
        same(first, third)
        assert answered(process) == (3, 3)
