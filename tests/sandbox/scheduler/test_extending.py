"""Which calls extenders get, and what their answers do."""

from typing import Any

import pytest

from tests.sandbox.scheduler.support import World, never
from tools.inprocess.api import Object
from tools.inprocess.extender import ScriptedExtender, keep, node_names
from tools.waiting import until

FULL: Object = {
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "bindVerb": "bind",
    "weight": 1,
    "nodeCacheCapable": True,
}
FILTER: Object = {"filterVerb": "filter", "nodeCacheCapable": True}


def score(**scores: Any) -> Any:
    return lambda _: [{"Host": host, "Score": points} for host, points in scores.items()]


@pytest.fixture
def two_nodes(world: World) -> World:
    world.node("a")
    world.node("b")
    return world


LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
ALIEN = 'claims a filtered node "x" which is not found in the input node list'
SILENT = "0/2 nodes are available: preemption: "


@pytest.mark.parametrize(
    ("fields", "answer", "reason", "message"),
    [
        ({}, {"Error": "cannot: 100% full"}, "SchedulerError", "cannot: 100% full"),
        *(
            (
                {},
                code,
                "SchedulerError",
                f"failed filter with extender at URL http://there/filter, {said}",
            )
            for code, said in ((500, "code 500"), (204, "code 204"))
        ),
        ({}, b"", "SchedulerError", "EOF"),
        ({}, b"<html>", "SchedulerError", "invalid character '<' looking for beginning of value"),
        ({}, {"NodeNames": ["a", "x"]}, "SchedulerError", f'extender "http://there" {ALIEN}'),
        ({"httpTimeout": "50ms"}, None, "SchedulerError", f'Post "http://there/filter": {LATE}'),
        ({}, {}, "Unschedulable", SILENT),
        ({}, b"null", "Unschedulable", SILENT),
        ({"nodeCacheCapable": False}, {"NodeNames": ["a", "b"]}, "Unschedulable", SILENT),
    ],
)
async def test_an_answer_that_names_no_node_ends_the_attempt(
    two_nodes: World, fields: Object, answer: Any, reason: str, message: str
) -> None:
    world = two_nodes
    world.extender.on["filter"] = lambda _: never() if answer is None else answer
    world.pod("web")
    async with world.scheduler({**FULL, **fields}):
        await until(lambda: world.condition("web")[0])
    found, said = world.condition("web")
    assert found == reason
    assert said.startswith(message.replace("http://there", world.extender.url))
    assert set(world.extender.verbs("web")) == {"filter"}


async def test_an_ignorable_extender_comes_last_and_may_fail(two_nodes: World) -> None:
    world, other = two_nodes, ScriptedExtender()
    await other.start()
    world.extender.on["filter"] = lambda _: 500
    other.on["filter"] = lambda body: keep(body, lambda name: name == "b")
    world.pod("web")
    try:
        async with world.scheduler(
            {**FILTER, "ignorable": True}, {**FILTER, "urlPrefix": other.url}
        ):
            await until(world.placed("web"))
    finally:
        await other.stop()
    assert world.place("web") == "b"
    assert node_names(world.extender.calls[0].json) == ["b"]


@pytest.mark.parametrize(
    ("answer", "offers"),
    [
        (None, [["b"]]),
        ({"NodeNames": []}, [["b"], ["a", "b"]]),
        ({"Error": "not that one"}, [["b"], ["a", "b"]]),
    ],
)
async def test_the_nominated_node_is_tried_alone_and_first(
    two_nodes: World, answer: Any, offers: list[list[str]]
) -> None:
    world = two_nodes
    world.extender.on["filter"] = lambda body: (
        answer if answer and len(body["NodeNames"]) == 1 else keep(body, lambda _: True)
    )
    world.pod("web")
    status = {"status": {"nominatedNodeName": "b"}}
    world.api.merge("/api/v1/namespaces/default/pods/web/status", status)
    async with world.scheduler(FILTER):
        await until(world.placed("web"))
    assert [sorted(node_names(body)) for body in world.extender.bodies("filter")] == offers


async def test_scores_are_weighted_added_up_and_the_highest_wins(two_nodes: World) -> None:
    world, other = two_nodes, ScriptedExtender()
    await other.start()
    world.extender.on["prioritize"] = score(a=10, b=7, elsewhere=99)
    other.on["prioritize"] = score(b=2)
    world.pod("web")
    scorer = {"prioritizeVerb": "prioritize", "nodeCacheCapable": True}
    try:
        async with world.scheduler(
            {**scorer, "weight": 1}, {**scorer, "weight": 2, "urlPrefix": other.url}
        ):
            await until(world.placed("web"))
    finally:
        await other.stop()
    assert world.place("web") == "b"  # 7 + 2 x 2 beats 10


@pytest.mark.parametrize("answer", [500, b"[", [{"Host": "a", "Score": 7.0}]])
async def test_a_failing_prioritize_call_changes_nothing(two_nodes: World, answer: Any) -> None:
    world = two_nodes
    world.extender.on["prioritize"] = lambda _: answer
    world.pod("web")
    async with world.scheduler(FULL):
        await until(world.placed("web"))
    assert world.extender.verbs("web") == ["filter", "prioritize", "bind"]


async def test_an_extender_hears_only_of_pods_with_its_resources(two_nodes: World) -> None:
    world = two_nodes
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    limits = {"limits": {"example.com/gpu": "0"}}
    world.pod("plain")
    world.pod("gpu", initContainers=[{"name": "init", "image": "a", "resources": limits}])
    async with world.scheduler({**FULL, "managedResources": managed}):
        await until(world.placed("plain", "gpu"))
    assert world.extender.verbs("plain") == []
    assert world.extender.verbs("gpu") == ["filter", "prioritize", "bind"]


async def test_in_tree_filters_come_first(two_nodes: World) -> None:
    world = two_nodes
    world.node("tainted", taints=[{"key": "k", "effect": "NoSchedule"}])
    world.node("cordoned", cordoned=True)
    world.node("small", cpu="50m")
    world.pod("huge", cpu="5")
    world.pod("web")
    async with world.scheduler(FULL):
        await until(world.placed("web"))
        await until(lambda: world.condition("huge")[0])
    assert world.extender.verbs("huge") == []
    assert sorted(node_names(world.extender.calls[0].json)) == ["a", "b"]
