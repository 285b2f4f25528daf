"""Nodes are checked again at the bind, if the verdict of the cycle may be outdated."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from gateway.scheduling.bind_check import NO_NODE
from moorage import FilterPlugin, Node, Pod, Rejection, Scope
from tests.gateway.scheduling.noting import decided, events, told
from tools.inprocess.api import Object
from tools.inprocess.gateway import Gate, Gateway, Options, bind, is_open, plane, policy_of
from tools.waiting import until

PODS = "/api/v1/namespaces/default/pods"
OCCUPIED = "node(s) already ran a pod"
REFUSED = f"checked again at the bind, Alone rejects: {OCCUPIED}"


class Alone(FilterPlugin):
    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection(OCCUPIED) if node.pods else None


class Labelled(FilterPlugin):
    depends_on = Scope.NODE
    reads_placements = False

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None if "closed" not in node.labels else Rejection("node(s) closed")


def running(
    folder: Path, *plugins: str, gate: Gate = is_open, **more: Any
) -> AbstractAsyncContextManager[Gateway]:
    enabled = ", ".join(f"{{name: {each}}}" for each in plugins)
    policy = policy_of(f"{{filter: {{enabled: [{enabled}]}}}}")
    options: Options = {
        "policy": policy,
        "nodes": ("n1", "n2"),
        "filter_gates": (gate,),
        "binder": True,
    }
    return plane(folder, Alone, Labelled, **options | more)


def pods(process: Gateway, *names: str, **spec: Any) -> list[Object]:
    return [process.api.pod(name, schedulerName="moorage", **spec) for name in names]


def checks(process: Gateway, outcome: str) -> float:
    return process.sample("moorage_bind_checks_total", outcome=outcome)


async def test_of_two_pods_with_the_same_node_the_second_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, "Alone") as process:
        first, second = pods(process, "first", "second")
        for each in (first, second):
            assert (await process.filter(each, "n1"))["NodeNames"] == ["n1"]
        assert await bind(process, first) == ""
        assert await bind(process, second) == REFUSED
        assert process.api.node_of("second") is None
        assert [checks(process, each) for each in ("spared", "rejected")] == [1, 1]
        attempt = await decided(process, "second")
        assert attempt["bindCheck"]["cause"] == "node changed"
        assert f"the bind to n1 was refused: {REFUSED}" in attempt["why"]


async def test_placements_that_no_plugin_reads_are_no_change(tmp_path: Path) -> None:
    async with running(tmp_path, "Labelled") as process:
        first, second = pods(process, "first", "second")
        for each in (first, second):
            await process.filter(each, "n1")
        assert await bind(process, first) == ""
        assert await bind(process, second) == ""
        assert checks(process, "spared") == 2


async def test_a_node_that_changed_since_the_decision_is_checked(tmp_path: Path) -> None:
    async with running(tmp_path, "Labelled") as process:
        (first,) = pods(process, "first")
        await process.filter(first, "n1")
        await told(process, "nodes", lambda: process.api.label("/api/v1/nodes/n1", closed="yes"))
        assert "Labelled rejects: node(s) closed" in await bind(process, first)


Calls = Callable[[Gateway, Object], Coroutine[Any, Any, None]]


async def filtered_on_both(process: Gateway, obj: Object) -> None:
    assert (await process.filter(obj, "n1", "n2"))["NodeNames"] == ["n1", "n2"]


async def rejected_since(process: Gateway, obj: Object) -> None:
    """Have another scheduler place a pod on n1, and try the first pod again."""
    await filtered_on_both(process, obj)
    (other,) = pods(process, "other")
    await process.filter(other, "n1")
    assert await bind(process, other) == ""
    assert (await process.filter(obj, "n1", "n2"))["NodeNames"] == ["n2"]


async def never_named(process: Gateway, obj: Object) -> None:
    pods(process, "there", nodeName="n1")
    await until(lambda: process.sample("moorage_cache_size", type="pods") == 1)
    assert (await process.filter(obj, "n2"))["NodeNames"] == ["n2"]


async def named_by_the_decision_before(process: Gateway, obj: Object) -> None:
    await filtered_on_both(process, obj)
    assert (await process.filter(obj, "n2"))["NodeNames"] == ["n2"]


async def preempting(process: Gateway, obj: Object) -> None:
    await filtered_on_both(process, obj)
    victims: Object = {"n2": {"Pods": []}}
    await process.call("preempt", {"Pod": obj, "NodeNameToMetaVictims": victims})


async def by_one_of_two(process: Gateway, obj: Object) -> None:
    """Ask a single plugin, which a path of the extender names."""
    pods(process, "there", nodeName="n1")
    await until(lambda: process.sample("moorage_cache_size", type="pods") == 1)
    _, answer = await process.call("filter/Labelled", {"Pod": obj, "NodeNames": ["n1", "n2"]})
    assert answer["NodeNames"] == ["n1", "n2"]


async def labelled(process: Gateway, obj: Object) -> None:
    """Change what the pod itself is, after its decision."""
    await until(lambda: events(process, "pods") == 1)
    await filtered_on_both(process, obj)
    await told(process, "pods", lambda: process.api.label(f"{PODS}/p", x="y"))


@pytest.mark.parametrize(
    ("calls", "node", "cause", "answer"),
    [
        (filtered_on_both, "n1", None, ""),
        (rejected_since, "n1", "not feasible", REFUSED),
        (rejected_since, "n2", None, ""),
        (never_named, "n1", "not feasible", REFUSED),
        (named_by_the_decision_before, "n1", "not feasible", ""),
        (by_one_of_two, "n1", "not feasible", REFUSED),
        (by_one_of_two, "n2", "not feasible", ""),
        (preempting, "n1", "no decision", ""),
        (labelled, "n1", "pod changed", ""),
        (filtered_on_both, "n9", "unknown node", NO_NODE),
    ],
)
async def test_a_bind_is_carried_out_where_the_newest_decision_holds_or_the_filters_say_yes(
    tmp_path: Path, calls: Calls, node: str, cause: str | None, answer: str
) -> None:
    plugins = ("Alone", "Labelled") if calls is by_one_of_two else ("Alone",)
    async with running(tmp_path, *plugins) as process:
        (obj,) = pods(process, "p")
        await calls(process, obj)
        assert await bind(process, obj, node) == answer
        assert process.api.node_of("p") == (None if answer else node)
        _, decisions = await process.get("/decisions/default/p")
        assert decisions["attempts"][0].get("bindCheck", {}).get("cause") == cause


@pytest.mark.parametrize("profile", ["moorage", "elsewhere"])
async def test_no_pod_is_bound_to_a_node_that_does_not_exist(tmp_path: Path, profile: str) -> None:
    """Neither without filter plugins, nor with a profile that is not ours."""
    async with plane(tmp_path, policy=policy_of("{}"), nodes=("n1",), binder=True) as process:
        obj = process.api.pod("p", schedulerName=profile)
        assert await bind(process, obj, "n9") == NO_NODE
        assert await bind(process, obj, "n1") == ""


async def test_a_node_that_the_watch_shows_late_is_waited_for(tmp_path: Path) -> None:
    async with plane(tmp_path, policy=policy_of("{}"), nodes=("n1",), binder=True) as process:
        (obj,) = pods(process, "p")
        bound = asyncio.create_task(bind(process, obj, "late"))
        await process.node("late")
        assert await bound == ""


async def test_a_pod_does_not_count_against_itself(tmp_path: Path) -> None:
    async with running(tmp_path, "Alone") as process:
        (first,) = pods(process, "first")
        await until(lambda: events(process, "pods"))
        assert await bind(process, first) == "", "nobody has decided, so it is checked"
        assert checks(process, "passed") == 1


async def test_a_bind_that_comes_while_another_is_checked_counts(tmp_path: Path) -> None:
    held, may_go = asyncio.Event(), asyncio.Event()
    may_go.set()

    async def gate(request: Any) -> bool:
        if request.HasField("cycle"):
            held.set()
            await may_go.wait()
        return True

    async with running(tmp_path, "Alone", gate=gate) as process:
        early, late = pods(process, "early", "late")
        await process.filter(early, "n1")
        await told(process, "nodes", lambda: process.api.label("/api/v1/nodes/n1", x="y"))
        await process.filter(late, "n1")
        held.clear()
        may_go.clear()
        checked = asyncio.create_task(bind(process, early))
        await held.wait()
        assert await bind(process, late) == "", "nothing has changed since its cycle"
        may_go.set()
        assert await checked == REFUSED
