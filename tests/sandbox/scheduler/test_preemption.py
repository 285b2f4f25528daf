"""Who has to go when a more important pod fits nowhere."""

from typing import Any

import pytest

from sandbox.apiserver.resources.table import parse
from tests.sandbox.scheduler.support import World
from tools.inprocess.api import Object
from tools.inprocess.extender import keep, metas, node_names
from tools.waiting import until

FULL: Object = {
    "filterVerb": "filter",
    "preemptVerb": "preempt",
    "nodeCacheCapable": True,
}


class Crowd:
    """Nodes filled up with pods, and an important one that comes later."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.low = world.priority_class(10)
        self.middle = world.priority_class(50)
        self.high = world.priority_class(1000)

    async def filled(self, **nodes: dict[str, str]) -> None:
        """Create nodes of 4 CPUs; each pod on them takes 2 and has the priority class given."""
        for node, pods in nodes.items():
            self.world.node(node, cpu="4")
            for pod, priority in pods.items():
                self.world.pod(pod, cpu="2", priorityClassName=priority)
                self.world.api.bind(pod, node)

    def important(self, cpu: str = "2", **spec: Any) -> None:
        self.world.pod("vip", cpu=cpu, **{"priorityClassName": self.high, **spec})

    def exists(self, pod: str) -> bool:
        target = parse(f"/api/v1/namespaces/default/pods/{pod}")
        return self.world.server.cluster.collection(target.resource).get("default", pod) is not None


@pytest.fixture
def crowd(world: World) -> Crowd:
    return Crowd(world)


@pytest.mark.parametrize("names_only", [True, False])
async def test_the_least_important_pod_makes_room(crowd: Crowd, names_only: bool) -> None:
    world = crowd.world
    await crowd.filled(
        n1={"a": crowd.middle, "b": crowd.middle}, n2={"c": crowd.low, "d": crowd.middle}
    )
    crowd.important()
    async with world.scheduler({**FULL, "nodeCacheCapable": names_only}):
        await until(world.placed("vip"))
    assert world.place("vip") == "n2"
    assert [crowd.exists(pod) for pod in "abcd"] == [True, True, False, True]
    assert world.extender.verbs("vip") == ["preempt", "filter"]
    asked, offered = world.extender.bodies("preempt")[0], world.extender.bodies("filter")[0]
    assert list(metas(asked)) == ["n1", "n2"]
    assert (asked["NodeNameToVictims"] is None) == names_only
    assert node_names(offered) == ["n2"]
    assert offered["Pod"]["status"]["nominatedNodeName"] == "n2"
    assert [event["reason"] for event in world.events("c")] == ["Preempted"]
    assert world.events("vip")[0]["note"] == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential placement for "
        "pod on node n2, preempting 1 victims"
    )


async def test_two_unimportant_victims_are_better_than_one_of_more_importance(
    crowd: Crowd,
) -> None:
    await crowd.filled(n1={"a": crowd.middle}, n2={"b": crowd.low, "c": crowd.low})
    crowd.important(cpu="3")
    async with crowd.world.scheduler(FULL):
        await until(crowd.world.placed("vip"))
    assert [crowd.exists(pod) for pod in "abc"] == [True, False, False]


NOT_THERE = "claims to preempt pod (UID: x) on node: n1, but the pod is not found on that node"
ELSEWHERE = {"namespaceSelector": {"matchLabels": {"team": "a"}}, "topologyKey": "zone"}
REQUIRED = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ELSEWHERE]}}
OFF = {"schedulerName": "moorage", "plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}


def meta(node: str, *uids: str) -> Object:
    return {"NodeNameToMetaVictims": {node: {"Pods": [{"UID": uid} for uid in uids]}}}


@pytest.mark.parametrize(
    ("answer", "spec", "fields", "told"),
    [
        ({}, {}, {}, "no candidate node for preemption"),
        (meta("n1"), {}, {}, 'expected at least one victim pod on node "n1"'),
        (meta("n1", "x"), {}, {}, f"extender: http://there {NOT_THERE}"),
        (meta("n9"), {}, {}, 'nodeinfo not found for node name "n9"'),
        (503, {}, {}, "failed preempt with extender at URL http://there/preempt, code 503"),
        (
            {},
            {"priorityClassName": "priority-9"},
            {},
            "not eligible due to preemptionPolicy=Never",
        ),
        ({}, {"affinity": REQUIRED}, {}, "plugin InterPodAffinity failed"),
        ({}, {}, {"profiles": [OFF]}, ""),
    ],
)
async def test_where_nobody_can_go_nobody_goes(
    crowd: Crowd, answer: Any, spec: Object, fields: Object, told: str
) -> None:
    world = crowd.world
    world.extender.on["preempt"] = lambda _: answer
    await crowd.filled(n1={"a": world.priority_class(8), "b": world.priority_class(7)})
    world.priority_class(9, preemptionPolicy="Never")
    crowd.important(**spec)
    world.pod("next", cpu="0")
    async with world.scheduler(FULL, **fields):
        await until(lambda: world.condition("vip")[0])
        await until(world.placed("next"))
    reason, message = world.condition("vip")
    said = message.removeprefix("0/1 nodes are available: 1 Insufficient cpu.")
    expected = f" preemption: {told.replace('http://there', world.extender.url)}" if told else ""
    assert (reason, said[: len(expected)], bool(said)) == ("Unschedulable", expected, bool(told))
    assert crowd.exists("a")
    assert crowd.exists("b")


async def test_an_ignorable_extender_that_fails_changes_nothing(crowd: Crowd) -> None:
    world = crowd.world
    world.extender.on["preempt"] = lambda _: 500
    await crowd.filled(n1={"a": crowd.low, "b": crowd.low})
    crowd.important()
    async with world.scheduler({**FULL, "ignorable": True}):
        await until(world.placed("vip"))


async def test_room_made_for_one_pod_is_not_taken_by_a_lesser_one(crowd: Crowd) -> None:
    world = crowd.world
    rejections = ["not yet"]

    def hesitate(body: Object) -> Object:
        # The preemptor's room is held while an extender keeps it off the node.
        if body["Pod"]["metadata"]["name"] == "vip" and rejections:
            return keep(body, lambda _: False, rejections[0], final=False)
        return keep(body, lambda _: True)

    world.extender.on["filter"] = hesitate
    await crowd.filled(n1={"a": crowd.low, "b": crowd.middle})
    crowd.important()
    async with world.scheduler(FULL):
        await until(lambda: world.extender.bodies("filter", "vip"))
        world.pod("thief", cpu="2", priorityClassName=crowd.low)
        await until(lambda: world.condition("thief")[0])
        assert world.extender.verbs("thief") == []
        rejections.clear()
        world.api.merge("/api/v1/nodes/n1", {"metadata": {"annotations": {"go": "on"}}})
        await until(world.placed("vip"))
    assert world.place("thief") is None
