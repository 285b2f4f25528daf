"""Pods that are nominated for a node count there in the cycles of pods that are not before them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage import FilterPlugin, Node, Pod, Rejection, Scope
from tests.gateway.scheduling.test_bind_checks import OCCUPIED, Alone, checks
from tests.scenarios.test_preemption import priority_class
from tests.scenarios.world import PATHS
from tools.inprocess.api import Object
from tools.inprocess.gateway import Gateway, bind, plane, policy_of
from tools.waiting import until


class Beside(FilterPlugin):
    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None if node.pods else Rejection("node(s) without a pod")


@asynccontextmanager
async def running(folder: Path, *plugins: str) -> AsyncIterator[Gateway]:
    enabled = ", ".join(f"{{name: {name}}}" for name in plugins or ("Alone",))
    policy = policy_of(f"{{filter: {{enabled: [{enabled}]}}}}")
    nodes = ("n1", "n2")
    async with plane(folder, Alone, Beside, policy=policy, nodes=nodes, binder=True) as process:
        for value in (4, 5, 6):
            process.api.create(PATHS["PriorityClass"], priority_class(f"p{value}", value))
        yield process


def waiting(process: Gateway, name: str, priority: int = 5, **more: Any) -> Object:
    spec: Object = {"schedulerName": "moorage", "priorityClassName": f"p{priority}"}
    return process.api.pod(name, **spec, **more)


async def nominate(process: Gateway, name: str, node: str) -> None:
    seen = {"resource": "pods", "type": "MODIFIED"}
    before = process.sample("moorage_watch_events_total", **seen)
    process.api.set_status(name, phase="Pending", nominatedNodeName=node)
    await until(lambda: process.sample("moorage_watch_events_total", **seen) > before)


def asked(process: Gateway) -> float:
    return process.sample("moorage_cycle_duration_seconds_count", phase="filter")


@pytest.mark.parametrize(
    ("plugin", "priority", "node", "feasible"),
    [
        ("Alone", 4, "n1", ["n1", "n2"]),
        ("Alone", 5, "n1", ["n2"]),
        ("Alone", 6, "n1", ["n2"]),
        ("Alone", 6, "lost", ["n1", "n2"]),
        ("Beside", 6, "n1", []),
    ],
    ids=["lower", "equal", "higher", "to a node that does not exist", "it may not come"],
)
async def test_a_node_is_feasible_with_the_pods_that_are_nominated_for_it_and_without(
    tmp_path: Path, plugin: str, priority: int, node: str, feasible: list[str]
) -> None:
    async with running(tmp_path, plugin) as process:
        waiting(process, "nominated", priority)
        await nominate(process, "nominated", node)
        answer = await process.filter(waiting(process, "p"), "n1", "n2")
        assert answer["NodeNames"] == feasible
        assert not answer["Error"]


async def test_a_pod_does_not_count_against_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        pod = waiting(process, "nominated")
        await nominate(process, "nominated", "n1")
        before = asked(process)
        assert (await process.filter(pod, "n1", "n2"))["NodeNames"] == ["n1", "n2"]
        assert asked(process) == before + 1


async def test_a_nomination_ends_when_the_pod_is_deleted_or_placed(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        nominated, pod = waiting(process, "nominated", 6), waiting(process, "p")
        await nominate(process, "nominated", "n1")
        assert (await process.filter(pod, "n1", "n2"))["NodeNames"] == ["n2"]
        assert await bind(process, nominated, "n2") == ""
        # It is assumed where it is bound to, whatever it was nominated for.
        assert (await process.filter(pod, "n1", "n2"))["NodeNames"] == ["n1"]
        waiting(process, "deleted", 6)
        await nominate(process, "deleted", "n1")
        assert (await process.filter(pod, "n1", "n2"))["NodeNames"] == []
        process.api.delete("/api/v1/namespaces/default/pods/deleted")
        # A pod that is rejected once more waits for the news.
        assert (await process.filter(pod, "n1", "n2"))["NodeNames"] == ["n1"]


async def test_what_is_cached_for_equal_pods_does_not_hide_a_nomination(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        for number in range(3):
            answer = await process.filter(waiting(process, f"p{number}"), "n1", "n2")
            assert answer["NodeNames"] == ["n1", "n2"]
        waiting(process, "nominated")
        for node, feasible in (("n1", ["n2"]), ("n2", ["n1"]), ("", ["n1", "n2"])):
            await nominate(process, "nominated", node)
            answer = await process.filter(waiting(process, f"equal-{node}x"), "n1", "n2")
            assert answer["NodeNames"] == feasible
            # For a pod that comes before it, what is cached holds.
            answer = await process.filter(waiting(process, f"first-{node}x", 6), "n1", "n2")
            assert answer["NodeNames"] == ["n1", "n2"]


async def test_the_decision_says_where_nominated_pods_counted(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        waiting(process, "nominated")
        await nominate(process, "nominated", "n1")
        await process.filter(waiting(process, "p"), "n1", "n2")
        _, answer = await process.get("/decisions/default/p")
        record = answer["attempts"][0]["filter"]
        assert (record["nodes"], record["feasible"], record["nominatedNodes"]) == (2, 1, 1)
        (plugin,) = record["plugins"]
        assert plugin["reasons"] == [{"reason": OCCUPIED, "nodes": 1, "unresolvable": True}]


async def test_room_is_not_made_for_a_pod_where_another_is_nominated(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        victims: Object = {}
        for node in ("n1", "n2"):
            uid = process.api.pod(f"on-{node}", nodeName=node)["metadata"]["uid"]
            victims[node] = {"Pods": [{"UID": uid}], "NumPDBViolations": 0}
        waiting(process, "nominated")
        await nominate(process, "nominated", "n1")
        body = {"Pod": waiting(process, "p"), "NodeNameToMetaVictims": victims}
        _, answer = await process.call("preempt", body)
        assert answer == {"NodeNameToMetaVictims": {"n2": victims["n2"]}}


async def test_of_two_pods_that_are_nominated_for_one_node_the_first_bind_wins(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as process:
        first, second = (waiting(process, name) for name in ("first", "second"))
        for each in (first, second):
            assert (await process.filter(each, "n1"))["NodeNames"] == ["n1"]
        for name in ("first", "second"):
            await nominate(process, name, "n1")
        assert await bind(process, first) == ""
        assert OCCUPIED in await bind(process, second)
        assert checks(process, "spared") == 1


async def test_a_group_is_placed_beside_pods_that_are_nominated(tmp_path: Path) -> None:
    labels = {"moorage.io/group": "ring", "moorage.io/group-size": "2"}
    async with running(tmp_path, "Gang", "Alone") as process:
        await process.node("n3")
        waiting(process, "nominated")
        await nominate(process, "nominated", "n2")
        ring = [waiting(process, name, labels=labels) for name in ("a", "b")]
        names = ("n1", "n2", "n3")
        found = [(await process.filter(each, *names))["NodeNames"] for each in ring]
        assert sorted(found) == [["n1"], ["n3"]]
