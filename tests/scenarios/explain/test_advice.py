"""What is advised about a pod that no node suits: about the nodes that it may use."""

import re
from typing import Any

import pytest

from tests.scenarios.explain.asking import Row, answered, explained, headline
from tests.scenarios.explain.test_first_lines import naming
from tests.scenarios.test_preemption import priority_class
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTNAME, GPU = "kubernetes.io/hostname", "example.com/gpu"
CORDONED = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}


def labelled(name: str, cpu: str = "8", **labels: str) -> Object:
    """A node whose host name is another one than its name, as with some clouds."""
    return node(name, cpu, labels={HOSTNAME: f"host-{name}", **labels})


def changed(obj: Object, **spec: Any) -> Object:
    return {**obj, "spec": {**obj.get("spec", {}), **spec}}


def offering(obj: Object, **amounts: str) -> Object:
    """Have a node offer more."""
    both = {**obj["status"]["allocatable"], GPU: amounts["gpu"]}
    return {**obj, "status": {"allocatable": both, "capacity": both}}


def wanting(name: str, profile: str = "steered", *, gpu: int, **more: Any) -> Object:
    """A pod that requests cards."""
    made = pod(name, profile, **more)
    resources = made["spec"]["containers"][0]["resources"]
    cards = {GPU: str(gpu)}
    made["spec"]["containers"][0]["resources"] = {
        "requests": resources["requests"] | cards,
        "limits": cards,
    }
    return made


NODES = (
    labelled("small", "1", disk="ssd"),
    labelled("busy", "2", pool="a"),
    changed(labelled("idle", pool="b"), unschedulable=True),
    changed(
        labelled("kept.example.com", pool="c"),
        taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}],
    ),
    labelled("free", pool="d"),
)

BOTH = {**naming("free"), "nodeSelector": {"disk": "ssd"}}

PINNED: dict[str, tuple[Object, str]] = {
    "by-label": (
        pod("by-label", cpu="2", spec={"nodeSelector": {"disk": "ssd"}}),
        "add a node with 2 of cpu and disk=ssd, or lower the pod's requests of cpu: no node .*1$",
    ),
    "by-name": (
        pod("by-name", cpu="2", spec=naming("small")),
        "lower the pod's requests of cpu: small has 1 in all, and the pod requests 2$",
    ),
    "by-two": (
        pod("by-two", spec=BOTH),
        "label node free with disk=ssd, or change the pod's nodeSelector$",
    ),
    "daemon": (
        pod("daemon", cpu="100", spec={**naming("idle"), "tolerations": [CORDONED]}),
        "lower the pod's requests of cpu: idle has 8 in all, and the pod requests 100$",
    ),
    "full": (
        pod("full", cpu="1", spec={"nodeSelector": {"pool": "a"}}),
        "free cpu on busy, add a node with pool=a, or lower the pod's requests of cpu$",
    ),
    "full-by-name": (
        pod("full-by-name", cpu="1", spec=naming("busy")),
        "free cpu on busy, or lower the pod's requests of cpu$",
    ),
    "cordoned": (
        pod("cordoned", spec={"nodeSelector": {"pool": "b"}}),
        "uncordon idle$",
    ),
    "tainted": (
        pod("tainted", spec={"nodeSelector": {"pool": "c"}}),
        "tolerate the taint team=x:NoSchedule in the pod, or remove it from kept.example.com$",
    ),
    "by-host": (
        pod("by-host", spec={"nodeSelector": {HOSTNAME: "w9"}}),
        "no node has the host name w9: change the pod's nodeSelector$",
    ),
    "by-plugin": (
        pod("by-plugin", spec={"nodeSelector": {"pool": "d"}}, reject={"free": "too hot"}),
        "change the pod, or free, to what Steered asks for; per node",
    ),
    "nobody-has": (
        wanting("nobody-has", gpu=1),
        f"no node offers {GPU}: add one that does, or lower the pod's requests of {GPU}$",
    ),
    "large": (
        pod("large", cpu="7", reject={"free": "too hot"}),
        "uncordon idle$",
    ),
}
"""Pods that no node suits, and what helps."""


async def test_advice_is_about_the_nodes_that_a_pod_may_use(world: World) -> None:
    await world.nodes(*NODES)
    async with world.scheduler():
        await world.create(pod("holds", cpu="1500m", spec={"nodeName": "busy"}))
        await world.create(*(made for made, _ in PINNED.values()))
        for name in PINNED:
            await world.condition(name, "Unschedulable")
        rows = [
            Row("", name, "none of 5 nodes suits it", step) for name, (_, step) in PINNED.items()
        ]
        await answered(world, rows)
        for name in PINNED:
            steps = "\n".join((await explained(world, name)).next)
            assert not re.search(rf"label .*{HOSTNAME}|create it", steps), steps

        for name, given, line in (
            ("by-label", "small", "is not on small: .*: Insufficient cpu$"),
            ("by-label", "host-free", "is not on free: .*: the pod's nodeSelector wants disk=ssd$"),
            ("by-name", "free", "is not on free: .*: the pod's affinity does not allow it$"),
            ("tainted", "kept", "is not on kept.example.com: .* taint team=x:NoSchedule$"),
            ("large", "idle", "is not on idle: .*: node.s. were unschedulable$"),
        ):
            assert re.search(line, await headline(world, name, given)), (name, given)


async def test_a_node_that_was_offered_without_any_plugin_was_feasible(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    async with world.scheduler("unruly"):
        await world.create(pod("any", "unruly"))
        place = (await world.bound())["any"]
        other = "n2" if place == "n1" else "n1"
        said = await headline(world, "any", other)
        assert said == (
            f"any is not on {other} but on {place}: it was feasible: kube-scheduler chose among 2 "
            "nodes: Moorage gave no scores"
        )


async def test_kube_scheduler_evicts_nobody_for_what_it_does_not_count(world: World) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(offering(node("n1"), gpu="1"))
    uncounted = [{"name": GPU, "ignoredByScheduler": True}]
    async with world.scheduler("fitting", managedResources=uncounted):
        await world.create(wanting("small", "fitting", gpu=1))
        await world.bound()
        urgent = {"priorityClassName": "urgent"}
        await world.create(wanting("urgent", "fitting", gpu=1, spec=urgent))
        await world.condition("urgent", "Unschedulable")
        found = await explained(world, "urgent")
    assert found.preemption.startswith("kube-scheduler evicts no pod, since its own filters")
    assert [each.evicting for each in found.rejections] == [
        "removing pods may help, but kube-scheduler evicts none for it"
    ]
    assert f"free {GPU} on a node, add a node, or lower the pod's requests of {GPU}" in found.next


async def test_a_nomination_to_a_node_that_is_gone_is_no_place(world: World) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(node("n1", cpu="1"), node("n2", cpu="2"))
    async with world.scheduler():
        await world.create(pod("low", cpu="2", finalizers=("example.com/hold",)))
        await world.bound()
        await world.create(pod("high", cpu="2", spec={"priorityClassName": "urgent"}))
        await answered(world, [Row("", "high", "it is to run on n2 once", "kube-scheduler binds")])
        (await world.request("DELETE", "/api/v1/nodes/n2")).check()
        await answered(
            world,
            [
                Row(
                    "",
                    "high",
                    "is pending: none of 2 nodes suits it: .*; node n2, which was nominated for "
                    "it, does not exist any more$|the only node does not suit it",
                    "add a node with 2 of cpu, or lower",
                )
            ],
        )


async def test_a_group_waits_for_members_with_gates_and_for_cordoned_nodes(world: World) -> None:
    await world.nodes(node("n1"), changed(node("n2"), unschedulable=True))
    labels = {"moorage.io/group": "ring", "moorage.io/group-size": "2"}
    gates = {"schedulingGates": [{"name": "example.com/quota"}]}
    async with world.scheduler("ganged"):
        await world.create(
            pod("one", "ganged", cpu="6", labels=labels),
            pod("two", "ganged", cpu="6", labels=labels, spec=gates),
        )
        await answered(
            world,
            [
                Row(
                    "",
                    "one",
                    r"group default/ring has 1 of 2 pods; 1 more waits for scheduling gates: "
                    r"default/two$",
                    "whoever set the gates has to remove them",
                )
            ],
        )
        found = await explained(world, "two")
        assert not any("must be created" in each for each in found.next)
        assert not any(each.evicting for each in found.rejections)
        ungated = {"spec": {"schedulingGates": None}}
        (await world.request("PATCH", f"{PODS}/two", ungated)).check()
        await answered(
            world,
            [
                Row(
                    "",
                    "two",
                    "group default/ring does not fit: 1 of 2",
                    "uncordon n2(: then it starts)?$",
                )
            ],
        )
